// Users of the client need the shapes of the API.
@_exported public import Wire

#if canImport(FoundationNetworking)
    // Types of the delegates' parameters, such as HTTPURLResponse, are declared there.
    @_exported public import FoundationNetworking
#endif
