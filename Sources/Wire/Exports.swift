// Users of the shapes need the types with which they are read and written.
@_exported public import Formats
