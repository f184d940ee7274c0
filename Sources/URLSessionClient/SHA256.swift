/// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104), so that a receiver of webhooks needs no cryptography library.
package struct SHA256 {
    static let blockSize = 64

    private var state: [UInt32] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]
    /// Bytes of an incomplete block.
    private var rest: [UInt8] = []
    private var length: UInt64 = 0

    /// Adds bytes of the message.
    mutating func update(_ bytes: some Sequence<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ add($0) }) == nil {
            Array(bytes).withUnsafeBufferPointer { add($0) }
        }
    }

    private mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
        length += UInt64(bytes.count)
        var place = 0
        if !rest.isEmpty {
            place = min(Self.blockSize - rest.count, bytes.count)
            rest += bytes[..<place]
            guard rest.count == Self.blockSize else { return }
            let block = rest
            rest.removeAll(keepingCapacity: true)
            block.withUnsafeBufferPointer { mix($0) }
        }
        while bytes.count - place >= Self.blockSize {
            mix(UnsafeBufferPointer(rebasing: bytes[place..<(place + Self.blockSize)]))
            place += Self.blockSize
        }
        rest += bytes[place...]
    }

    /// The digest, 32 bytes.
    consuming func finish() -> [UInt8] {
        let bits = length * 8
        let zeros = (Self.blockSize + 55 - rest.count) % Self.blockSize
        update([0x80] + [UInt8](repeating: 0, count: zeros) + Self.bytes(of: bits))
        return state.flatMap { Self.bytes(of: $0) }
    }

    /// The digest of a message, 32 bytes.
    package static func digest(_ message: [UInt8]) -> [UInt8] {
        var digest = SHA256()
        digest.update(message)
        return digest.finish()
    }

    /// The authentication code of a message, 32 bytes.
    static func authenticationCode(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        var key = key.count > blockSize ? digest(key) : key
        key += [UInt8](repeating: 0, count: blockSize - key.count)
        return digest(key.map { $0 ^ 0x5C } + digest(key.map { $0 ^ 0x36 } + message))
    }

    private mutating func mix(_ block: UnsafeBufferPointer<UInt8>) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.blockSize) { schedule in
            for place in 0..<16 {
                let (high, low) = (UInt32(block[place * 4]) << 8, UInt32(block[place * 4 + 2]) << 8)
                schedule[place] = (high | UInt32(block[place * 4 + 1])) << 16 | low | UInt32(block[place * 4 + 3])
            }
            for place in 16..<64 {
                let (near, far) = (schedule[place - 2], schedule[place - 15])
                let sum0 = Self.rotate(far, 7) ^ Self.rotate(far, 18) ^ far >> 3
                let sum1 = Self.rotate(near, 17) ^ Self.rotate(near, 19) ^ near >> 10
                schedule[place] = schedule[place - 16] &+ sum0 &+ schedule[place - 7] &+ sum1
            }
            rounds(UnsafeBufferPointer(schedule))
        }
    }

    private mutating func rounds(_ schedule: UnsafeBufferPointer<UInt32>) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        Self.constants.withUnsafeBufferPointer { constants in
            for place in 0..<64 {
                let choice = (e & f) ^ (~e & g)
                let sum1 = Self.rotate(e, 6) ^ Self.rotate(e, 11) ^ Self.rotate(e, 25)
                let first = h &+ sum1 &+ choice &+ constants[place] &+ schedule[place]
                let sum0 = Self.rotate(a, 2) ^ Self.rotate(a, 13) ^ Self.rotate(a, 22)
                let second = sum0 &+ ((a & b) ^ (a & c) ^ (b & c))
                (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
            }
        }
        for (place, word) in [a, b, c, d, e, f, g, h].enumerated() { state[place] &+= word }
    }

    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }

    /// The bytes, the most significant first.
    private static func bytes(of value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { [UInt8]($0) }
    }

    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4, 0xAB1C_5ED5,
        0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE, 0x9BDC_06A7, 0xC19B_F174,
        0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F, 0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA,
        0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7, 0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967,
        0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC, 0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85,
        0xA2BF_E8A1, 0xA81A_664B, 0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070,
        0x19A4_C116, 0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
        0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7, 0xC671_78F2,
    ]
}
