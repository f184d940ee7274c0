import FoundationEssentials
import Glibc
import URLSessionClient
import Wire

exit(await CommandLineTool.run(Array(CommandLine.arguments.dropFirst())))
