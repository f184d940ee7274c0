import Glibc

Signals.prepare()
Restart.prepare()
if let status = ProcFilesystem.complain() { exit(status) }
exit(await Command.run(Array(CommandLine.arguments.dropFirst())))
