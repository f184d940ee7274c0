import Formats

/// A manifest of this service, or a Metalink document of many files.
enum ManifestList {
    static func files(in document: [UInt8]) throws(SetExpansionError) -> [SetFile] {
        let start = document.first { !$0.isBlank && $0 != 0x0A && $0 != 0x0D }
        return start == UInt8(ascii: "{") ? try manifest(document) : try metalink(document)
    }

    private static func manifest(_ document: [UInt8]) throws(SetExpansionError) -> [SetFile] {
        guard let elements = try JSON(source: document)["files"]?.elements else {
            throw SetExpansionError("The manifest has no files.")
        }
        guard elements.count <= SetExpansion.mostFiles else { throw .tooManyFiles }
        var files: [SetFile] = []
        for (index, element) in elements.enumerated() {
            let place = "File \(index + 1) of the manifest"
            guard let path = element["path"]?.stringValue, let url = element["url"]?.stringValue else {
                throw SetExpansionError("\(place) has no path or no URL.")
            }
            let length = element["length"]?.integerValue
            guard length ?? 0 >= 0, length != nil || element["length"]?.isNull != false else {
                throw SetExpansionError("\(place) has a length that is no number of bytes.")
            }
            var digest: SetDigest?
            if let given = element["digest"], !given.isNull {
                digest = try self.digest(
                    given["algorithm"]?.stringValue ?? "", given["value"]?.stringValue ?? "", place)
            }
            files.append(try SetFile(listing: path, at: url, digest, length: length, as: place))
        }
        return files
    }

    private static func metalink(_ document: [UInt8]) throws(SetExpansionError) -> [SetFile] {
        let elements: [XMLElement]
        do throws(MetalinkFile.Refused) { elements = try MetalinkFile.elements(of: document) } catch {
            throw SetExpansionError(error.detail)
        }
        var files: [SetFile] = []
        for (index, element) in elements.enumerated() {
            let place = "File \(index + 1) of the Metalink document"
            let file: MetalinkFile
            do throws(MetalinkFile.Refused) { file = try MetalinkFile(element) } catch {
                throw SetExpansionError("\(place): \(error.detail)")
            }
            guard let path = file.name else { throw SetExpansionError("\(place) has no name.") }
            let digest = try file.digest.map { given throws(SetExpansionError) in
                try self.digest(given.algorithm.rawValue, given.value, place)
            }
            files.append(try SetFile(listing: path, at: file.url, digest, length: file.size, as: place))
        }
        return files
    }

    private static func digest(
        _ algorithm: String, _ value: String, _ place: String
    ) throws(SetExpansionError) -> SetDigest {
        guard let digest = SetDigestAlgorithm(rawValue: algorithm).flatMap({ SetDigest($0, hexadecimal: value) }) else {
            throw SetExpansionError("\(place) has a digest that is not supported, or not of its algorithm's length.")
        }
        return digest
    }
}
