// Who speaks with the service needs the words it speaks in.
@_exported public import Wire

#if canImport(FoundationNetworking)
    // What the delegates get, such as HTTPURLResponse, has its members there.
    @_exported public import FoundationNetworking
#endif
