/// The folder of the project, for tests that read its files.
package let repository = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
