import CSimulation
import Glibc

// simulate [--seeds N] [--first SEED] [--seed SEED] [--jobs N] [--verbose] [--with FAULT,…] [--without FAULT,…] [--clients N] [--tasks N]
// [--plant NAME] [--twice]
csim_fix_addresses(CommandLine.unsafeArgv)
exit(Campaign(arguments: Array(CommandLine.arguments.dropFirst())).run())
