import Base
import Store
import Testing

@Suite struct SealerTests {
    private let sealer = Sealer(masterKey: [UInt8](repeating: 7, count: 32))

    @Test(arguments: [0, 1, 15, 16, 17, 4096])
    func `A sealed value opens again`(_ length: Int) throws {
        let secret = RandomBytes.make(length)
        let sealed = sealer.seal(secret, boundTo: "credential/4")
        #expect(sealed.count == 1 + 12 + length + 16)
        #expect(try sealer.open(sealed, boundTo: "credential/4") == secret)
    }

    @Test func `The same secret is sealed differently each time`() {
        #expect(sealer.seal([1], boundTo: "a") != sealer.seal([1], boundTo: "a"))
    }

    @Test func `A value does not open in another row, with another key or with a changed byte`() {
        let sealed = sealer.seal([1, 2, 3], boundTo: "credential/4")
        #expect(throws: SealError.notAuthentic) { try sealer.open(sealed, boundTo: "credential/5") }
        let other = Sealer(masterKey: [UInt8](repeating: 8, count: 32))
        #expect(throws: SealError.notAuthentic) { try other.open(sealed, boundTo: "credential/4") }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: SealError.self) { try sealer.open(changed, boundTo: "credential/4") }
        }
    }

    @Test func `A value that is too short or of another version is malformed`() {
        let sealed = sealer.seal([1, 2, 3], boundTo: "a")
        #expect(throws: SealError.malformed) { try sealer.open([], boundTo: "a") }
        #expect(throws: SealError.malformed) { try sealer.open(Array(sealed.prefix(28)), boundTo: "a") }
        #expect(throws: SealError.malformed) { try sealer.open([2] + sealed.dropFirst(), boundTo: "a") }
    }
}
