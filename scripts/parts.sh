# The parts of the tests, for the scripts that run them. To be sourced.

# Each test target belongs to one part, those that take longest first; scripts/check-walls holds the list to Package.swift.
parts=('Service|Launches' API Store 'Core|Base|Wire|WireMapping|TestSupport|Fuzz' 'Files|SQL|Buckets' 'URLSessionClient|Tool'
    HTTPServer TransferEngine System)

# Suites of the whole service whose outcome may depend on the engine of the store.
on_the_engine='Acceptance|App|Body|Cache|Contents|Crash|Endurance|Event|Kill|KillPoint|Launch|LaunchStorm|MasterKey|Metrics'
on_the_engine+='|Node|Question|SharedQuestion|Refresh|Resume|Session|SetSource|Task|Upload|UploadKill'
# Suites that are told on three nodes as well.
on_three_nodes='App|Cache|Kill|Launch|Question|Refresh|Session|Set|SetSource'
# Suites with a test that takes a minute by itself: they begin at once, beside the others.
slow='Cluster|Egress|LaunchStorm'
# What three nodes do at length, their storm, and other programs beside kills are left to the longer run.
longer='ClusterStorm|ClusterTrouble|ArrivingTools'

# The filter that takes the suites of a part, or those that are named: of PART [SUITE|SUITE…]
of() { echo "^($1)Tests\.${2:+($2)Tests/}"; }
