/// Whether a `PUT` created a session or reconnected to it.
package enum SessionArrival: Sendable { case created, reconnected }
