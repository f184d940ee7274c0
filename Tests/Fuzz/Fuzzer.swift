import Foundation

// The entry that libFuzzer calls (https://llvm.org/docs/LibFuzzer.html); scripts/fuzz builds it with the checks of FuzzTests.

private let check = { () -> @Sendable ([UInt8]) throws -> Void in
    let name = ProcessInfo.processInfo.environment["PARSER"] ?? ""
    guard let parser = parsers.first(where: { $0.name == name }) else { fatalError("There is no parser \(name).") }
    return parser.check
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    do {
        try check(bytes)
        if let long = stretched(bytes) { try checkCost(long) }
    } catch { fatalError("\(error)") }
    return 0
}

/// For one input in 4096, the same input with a part of it repeated, about 128 KiB long.
private func stretched(_ bytes: [UInt8]) -> [UInt8]? {
    // FNV-1a, so that an input that is run again is stretched in the same way.
    let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    guard hash % 4096 == 0, !bytes.isEmpty else { return nil }
    let start = Int(hash >> 8 & 0xFFFF) % bytes.count
    let length = min(1 + Int(hash >> 24 & 0xFF) % 16, bytes.count - start)
    let repeated = repeatElement(bytes[start..<(start + length)], count: 131_072 / length).joined()
    return bytes[..<start] + Array(repeated) + bytes[start...]
}

/// A parser takes time in proportion to the length: AddressSanitizer and a slow machine included, 128 KiB take no second.
private func checkCost(_ bytes: [UInt8]) throws {
    func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
    let began = seconds()
    try check(bytes)
    let taken = seconds() - began
    try hold(taken < 1, "\(bytes.count) bytes take \(taken) seconds")
}
