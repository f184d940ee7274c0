// Who speaks with the service needs the words it speaks in.
@_exported public import Wire
