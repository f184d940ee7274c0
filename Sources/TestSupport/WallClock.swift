import Base

/// Milliseconds since 1970, by the clock of the machine.
package func wallMilliseconds() -> Int64 { Clock.system.wall() }
