/// The project's folder, for tests that read its files.
package let repository = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
