"""What a storm says at its end."""
import sys


def closing_line(storm, seconds):
    outcomes, service = storm.outcomes, storm.service
    return (f"storm: {seconds:.0f} s, seed {storm.seed}, {storm.worker_count} workers, {storm.operations} operations, "
            f"{storm.created} tasks created, {outcomes['succeeded']} succeeded, {outcomes['httpError']} httpError, "
            f"{outcomes['failed']} failed, {outcomes['cancelled']} cancelled, {outcomes['notModified']} notModified, "
            f"{outcomes['deleted']} deleted before their end, {storm.uploads} uploads checked, {service.kills} kills, "
            f"{service.terms} terms, {storm.receiver.delivered} launches delivered; "
            + (f"FAILED: {storm.failure.sentence}" if storm.failure else "every guarantee held"))


def met_line(storm):
    """What the choices led to, for judging what a run has tried."""
    return "met: " + ", ".join(f"{what} {count}" for what, count in sorted(storm.met.items()))


def failure(storm, seconds):
    """Everything that tells of the first violation."""
    violation = storm.failure

    def section(title, lines):
        print(f"\n== {title}", *lines, sep="\n", file=sys.stdout)

    section(f"after {seconds:.0f} s, seed {storm.seed}, start {storm.service.generation} of the service", [violation.sentence])
    if violation.documents:
        section("what was found", violation.documents)
    if violation.task is not None:
        section(f"history of {violation.task.path}", [str(violation.task.creation)[:3000], *violation.task.history])
    if violation.session is not None:
        section(f"history of {violation.session.path}", [str(violation.session.configuration),
                                                         *list(violation.session.history)[-60:]])
        section("launches of the session", [launch.describe() for launch in violation.session.launches()])
    if violation.resource is not None:
        section("the origin's record", [violation.resource.describe()])
        section("other exchanges on these connections", _neighbours(storm, violation.resource))
    section("end of the service's log", storm.service.recent_log())
    print(f"\nThe data folder is {storm.folder}.")


def _neighbours(storm, resource):
    """What the connections of the resource carried before: a fault may come from another task."""
    connections = {exchange.connection for exchange in list(resource.log)}
    found = [exchange for other in list(storm.registry.resources.values()) if other is not resource
             for exchange in list(other.log) if exchange.connection in connections]
    return [str(exchange) for exchange in sorted(found, key=lambda exchange: exchange.number)[-40:]]
