import Glibc

/// How busy the machine is.
package enum SystemLoad {
    /// The load average of the last minute for each processor, or nil where the kernel does not tell.
    ///
    /// The corresponding C function is `getloadavg`.
    package static func perProcessor() -> Double? {
        var averages = [0.0]
        guard getloadavg(&averages, 1) == 1 else { return nil }
        return averages[0] / Double(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }
}
