import Core
import HTTPServer
import Wire
import WireMapping

extension Call {
    func query(_ name: String) -> String? {
        request.query.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    func queryInteger(_ name: String, in range: ClosedRange<Int64>) throws -> Int64? {
        guard let text = query(name) else { return nil }
        guard let number = Int64(digits: text), range.contains(number) else {
            let top = range.upperBound == .max ? "on" : "to \(range.upperBound)"
            throw Problem.query(name, "This must be a whole number from \(range.lowerBound) \(top).")
        }
        return number
    }

    func queryNumber(_ name: String, in range: ClosedRange<Double>) throws -> Double? {
        guard let text = query(name) else { return nil }
        let isNumber = text.utf8.allSatisfy { Bytes.isDigit($0) || $0 == UInt8(ascii: ".") }
        guard isNumber, let number = Double(text), range.contains(number) else {
            throw Problem.query(
                name, "This must be a number from \(Int(range.lowerBound)) to \(Int(range.upperBound)).")
        }
        return number
    }

    /// The value that belongs to the word of a parameter.
    func queryWord<Word>(_ name: String, _ words: [(String, Word)]) throws -> Word? {
        guard let text = query(name) else { return nil }
        guard let word = words.first(where: { $0.0.utf8.elementsEqual(text.utf8) }) else {
            throw Problem.query(name, "This must be one of: \(words.map(\.0).joined(separator: ", ")).")
        }
        return word.1
    }

    /// The parameters that are lists. Some generated clients send a parameter for each word instead of commas.
    private static let lists: Set = ["kind", "outcome", "state"]

    /// The values that belong to the words of a list; empty if there is no such parameter.
    func queryWords<Word: Hashable>(_ name: String, _ words: [(String, Word)]) throws -> Set<Word> {
        let lists = request.query.filter { $0.name.utf8.elementsEqual(name.utf8) }.map(\.value)
        return try Set(
            lists.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }.map { text in
                guard let word = words.first(where: { $0.0.utf8.elementsEqual(text.utf8) }) else {
                    let choice = words.map(\.0).joined(separator: ", ")
                    throw Problem.query(name, "This must be one or more of these, separated by commas: \(choice).")
                }
                return word.1
            })
    }

    func queryText(_ name: String, _ rule: TextRule = .length(1...256)) throws -> String? {
        guard let text = query(name) else { return nil }
        if let detail = rule.violation(in: text) { throw Problem.query(name, detail) }
        return text
    }

    /// Refuses unknown parameters, and repeated ones that are not lists.
    func checkQuery(_ known: [String]) throws {
        var seen: Set<String> = []
        for (name, _) in request.query {
            guard known.contains(where: { $0.utf8.elementsEqual(name.utf8) }) else {
                let choice = known.isEmpty ? "This route has none." : "There are: \(known.joined(separator: ", "))."
                throw Problem.query(name, "There is no such query parameter. \(choice)")
            }
            guard seen.insert(name).inserted || Self.lists.contains(name) else {
                throw Problem.query(name, "This parameter occurs twice.")
            }
        }
    }

    func queryTime(_ name: String) throws -> Timestamp? {
        guard let text = query(name)?.restoringOffsetSign else { return nil }
        if let detail = TextRule.timestamp.violation(in: text) { throw Problem.query(name, detail) }
        return Timestamp(rfc3339: text)
    }

    // MARK: Pages

    /// The parameters of lists in the order of creation.
    static let listing = ["order", "createdAfter", "createdBefore", "limit", "cursor"]

    /// The requested part of a list, and its order.
    func span(_ standard: ListOrder = .ascending) throws -> ListSpan {
        ListSpan(
            try queryWord("order", ListOrder.allCases.map { ($0.rawValue, $0) }) ?? standard,
            createdAfter: try queryTime("createdAfter"), createdBefore: try queryTime("createdBefore"))
    }

    /// The maximum number of items of a page.
    func limit() throws -> Int { Int(try queryInteger("limit", in: 1...1000) ?? 100) }

    /// The start of the page: the position of the last item of the page before, 0 for the first page.
    func cursor() throws -> Int64 {
        guard let cursor = query("cursor") else { return 0 }
        guard let position = server.cursors.position(in: cursor, of: listName) else {
            throw Problem.query(
                "cursor", "This is not the nextCursor of a page of this list, with the same filters and order.")
        }
        return position
    }

    /// A page of a list: as many items as requested, or as fit into one response.
    ///
    /// - Parameters:
    ///   - most: The maximum number of records that a search examines; `nil` if each record becomes an item.
    ///   - fetch: Reads at most so many records after a position.
    ///   - position: The position of a record in the list.
    ///   - write: Renders a record for the client; `nil` if a search does not match.
    func page<Record, Item: JSONWritable>(
        searching most: Int? = nil, fetch: (_ after: Int64, _ limit: Int) async throws -> [Record],
        position: (Record) -> Int64, write: (Record) async throws -> Item?
    ) async throws -> HTTPResponse {
        let limit = try limit()
        var last = try cursor()
        var items = PageItems()
        var (hasMore, isFull, examined) = (false, false, 0)
        repeat {
            // Lets other requests read in between.
            if examined > 0 { await Task.yield() }
            let count =
                most.map { min($0 - examined, PageItems.searchedAtOnce) }
                ?? min(limit - items.count, PageItems.readAtOnce)
            let records = try await fetch(last, count + 1)
            hasMore = records.count > count
            for record in records.prefix(count) {
                if let item = try await write(record) {
                    isFull = items.count == limit || !items.add(item)
                    if isFull { break }
                }
                last = position(record)
                examined += 1
            }
        } while hasMore && !isFull && items.count < limit && examined < most ?? .max
        let next = hasMore || isFull ? server.cursors.cursor(at: last, of: listName) : nil
        var response = HTTPResponse.json(Page(items: items.texts, nextCursor: next), expecting: items.bytes + 256)
        if let next { response.headers.append(("Link", "<\(target(cursor: next))>; rel=\"next\"")) }
        return response
    }

    /// The binding of a cursor: its principal, its list, and the list's filters.
    private var listName: String {
        let filters = request.query.filter { $0.name != "limit" && $0.name != "cursor" }
            .map { "\($0.name)=\($0.value)" }.sorted()
        return ([caller.principal] + request.segments + ["?"] + filters).joined(separator: "\u{0}")
    }

    /// The request's target with another cursor.
    private func target(cursor: String) -> String {
        let parts = request.rawTarget.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let kept = (parts.count > 1 ? parts[1].split(separator: "&") : []).filter { !$0.hasPrefix("cursor=") }
        return "\(parts[0])?" + (kept.map(String.init) + ["cursor=\(cursor)"]).joined(separator: "&")
    }
}

extension Problem {
    static func query(_ name: String, _ detail: String) -> Problem {
        Problem(.invalidValue, "\(name): \(detail)", errors: [Entry(parameter: name, detail: detail)])
    }

    static func header(_ name: String, _ detail: String) -> Problem {
        Problem(.invalidValue, "\(name): \(detail)")
    }
}

extension String {
    /// The time with the plus of its time-zone offset, which decoding turns into a space if it was not percent-encoded.
    fileprivate var restoringOffsetSign: String {
        guard let sign = utf8.index(endIndex, offsetBy: -6, limitedBy: startIndex), utf8[sign] == UInt8(ascii: " ")
        else { return self }
        return self[..<sign] + "+" + self[index(after: sign)...]
    }
}

extension Int64 {
    /// The number with these digits, without a sign.
    init?(digits text: String, atMost count: Int = 19) {
        guard (1...count).contains(text.utf8.count), text.utf8.allSatisfy(Bytes.isDigit) else { return nil }
        self.init(text)
    }
}
