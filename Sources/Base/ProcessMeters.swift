import Glibc

/// The standard metrics of a process, under the names that Prometheus's own clients use.
package enum ProcessMeters {
    /// - Parameter startedAt: Milliseconds since 1970.
    package static func register(_ metrics: Metrics, startedAt: Int64) {
        metrics.counter("process_cpu_seconds_total", "CPU time of the service.") { cpuSeconds }
        metrics.gauge("process_resident_memory_bytes", "Resident memory of the service.") { residentBytes }
        metrics.gauge("process_open_fds", "Open file descriptors.") { Double(openDescriptors) }
        metrics.gauge("process_max_fds", "Limit of open file descriptors.") { maximumDescriptors }
        metrics.gauge("process_start_time_seconds", "Start time of the service, in seconds since 1970.") {
            Double(startedAt) / 1000
        }
    }

    private static var cpuSeconds: Double {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return .nan }
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// The second number of `/proc/self/statm` is the number of resident pages.
    private static var residentBytes: Double {
        let numbers = SystemLoad().read("/proc/self/statm")?.split(separator: " ") ?? []
        guard numbers.count > 1, let pages = Double(numbers[1]) else { return .nan }
        return pages * Double(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static var openDescriptors: Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without ".", ".." and the descriptor of the folder itself.
        return count - 3
    }

    private static var maximumDescriptors: Double {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .nan }
        return limit.rlim_cur == .max ? .infinity : Double(limit.rlim_cur)
    }
}
