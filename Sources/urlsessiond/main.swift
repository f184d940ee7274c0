import Glibc

Signals.prepare()
exit(await Command.run(Array(CommandLine.arguments.dropFirst())))
