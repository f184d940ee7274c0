// Who reads the shapes needs what they are read and written with.
@_exported public import Formats
