/// Whether a `PUT` made a session or found one.
package enum SessionArrival: Sendable { case created, reconnected }
