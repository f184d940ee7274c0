// Texts for the API's words. The tone is a colour; sign and text have the same meaning without colour.

const signs = { good: "✓", bad: "✕", warn: "!", run: "▸", idle: "–", pause: "‖" };

const outcomes = {
  succeeded: ["good", "Succeeded"],
  httpError: ["bad", "HTTP error"],
  failed: ["bad", "Failed"],
  cancelled: ["idle", "Cancelled"],
  notModified: ["good", "Not modified"],
};

const phases = {
  delayed: ["idle", "Delayed"],
  awaitingAnswer: ["warn", "Awaits an answer"],
  deferred: ["idle", "Deferred"],
  waitingForConnectivity: ["warn", "No connectivity"],
  queued: ["idle", "Queued"],
  connecting: ["run", "Connecting"],
  sending: ["run", "Sending"],
  receiving: ["run", "Receiving"],
  retryWait: ["warn", "Waits to retry"],
  finalizing: ["run", "Finalizing"],
};

const launches = {
  pending: ["warn", "Pending"],
  delivering: ["run", "Delivering"],
  launched: ["run", "Launched"],
  completed: ["good", "Completed"],
  superseded: ["idle", "Superseded"],
  exhausted: ["bad", "Exhausted"],
  parked: ["pause", "Parked"],
};

const versions = {
  expanding: ["run", "Listing files"],
  fetching: ["run", "Fetching"],
  verifying: ["run", "Verifying"],
  publishing: ["run", "Publishing"],
  published: ["good", "Published"],
  failed: ["bad", "Failed"],
  superseded: ["idle", "Superseded"],
  cancelled: ["idle", "Cancelled"],
};

const sessions = { active: ["good", "Active"], invalidating: ["warn", "Invalidating"], invalid: ["idle", "Invalid"] };

const questions = { open: ["warn", "Open"], answered: ["good", "Answered"], expired: ["idle", "Expired"] };

const kinds = {
  "session.handleEvents": "Handle events",
  "app.performFetch": "Background fetch",
  "app.backgroundRefreshStatusDidChange": "Refresh status changed",
  "webhook.ping": "Ping",
};

const reasons = {
  tasksFinished: "tasks finished",
  authenticationRequired: "authentication required",
  delayedRequestReady: "a delayed request is ready",
  tasksStalled: "tasks make no progress",
  setPublished: "a set was published",
  setFailed: "a version of a set failed",
};

const waits = {
  connectivity: "the network",
  cellularAccess: "a network that is not cellular",
  expensiveAccess: "a network that is not expensive",
  constrainedAccess: "a network that is not constrained",
  power: "external power",
  cheapNetwork: "a cheap network",
  unconstrainedNetwork: "an unconstrained network",
  load: "a less busy machine",
  window: "its time window",
  earliestBeginDate: "its earliest begin date",
  answer: "your answer",
  retry: "the next attempt",
  originPause: "the end of the origin's pause",
  capacity: "a slot",
  disk: "space on the disk",
  sameTransfer: "the transfer of another task",
};

function said([tone, text]) {
  return { tone, text, sign: signs[tone] };
}

/** The phase or outcome of a task: `{tone, text, sign}`. */
export function taskStatus(task) {
  if (task.state === "completed") return said(outcomes[task.outcome] ?? ["idle", task.outcome]);
  if (task.state === "suspended") return said(["pause", "Suspended"]);
  if (task.state === "canceling") return said(["warn", "Canceling"]);
  return said(phases[task.phase] ?? ["run", task.phase ?? "Running"]);
}

export const launchStatus = (launch) => said(launches[launch.state] ?? ["idle", launch.state]);
export const sessionStatus = (session) => said(sessions[session.state] ?? ["idle", session.state]);
export const questionStatus = (question) => said(questions[question.state] ?? ["idle", question.state]);
export const versionStatus = (version) => said(versions[version.state] ?? ["idle", version.state]);
export const launchKind = (kind) => kinds[kind] ?? kind;
export const launchReason = (reason) => reasons[reason] ?? reason;
export const waitsFor = (kind) => waits[kind] ?? kind;
export const outcomeStatus = (outcome) => said(outcomes[outcome] ?? ["idle", outcome ?? "–"]);

/** The text within a sentence: `HTTP error` is unchanged. */
const lowered = (text) => text.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase());

/** An event as a sentence. */
export function eventText({ type, data }, { bytes, duration }) {
  switch (type) {
    case "task.didCreate":
      return `created: ${data.kind} of ${data.url}`;
    case "task.isWaitingForConnectivity":
      return "waits for connectivity";
    case "task.didSendBodyData":
      return `sent ${bytes(data.totalBytesSent)}`;
    case "task.didWriteData":
      return `received ${bytes(data.totalBytesWritten)}`;
    case "task.willRetry":
      return `attempt ${data.attempt} failed${data.error ? `: ${data.error.localizedDescription}` : ""}; resumes at ${
        bytes(data.offset)
      }`;
    case "task.willBeginDelayedRequest":
      return "asks whether to start";
    case "task.didReceiveChallenge":
      return `was asked for a credential by ${data.protectionSpace?.host ?? "the server"}`;
    case "task.didResumeAtOffset":
      return data.fileOffset ? `resumes at ${bytes(data.fileOffset)} (${data.cause})` : `restarts (${data.cause})`;
    case "task.didFinishDownloading":
      return `finished downloading ${bytes(data.length)}`;
    case "task.didFinishCollectingMetrics":
      return `took ${duration(data.taskInterval?.duration)}, requests: ${data.transactionMetrics?.length ?? 0}`;
    case "task.didComplete":
      return `completed: ${lowered(outcomeStatus(data.outcome).text)}` +
        (data.error
          ? `, ${data.error.localizedDescription}`
          : data.response
          ? `, status ${data.response.statusCode}`
          : "");
    case "session.didStall":
      return `no progress of ${data.taskCount} running tasks since ${data.since}`;
    case "set.didPublish":
      return `version ${data.version} of set ${data.name} is current: ${data.files} files, ${bytes(data.bytes)}`;
    case "set.didFail":
      return `version ${data.version} of set ${data.name} failed${
        data.failures?.length ? `: ${data.failures[0].path ?? ""} ${data.failures[0].detail}` : ""
      }`;
    case "session.didFinishEvents":
      return "the app has handled its events";
    case "session.didBecomeInvalid":
      return "became invalid";
    default:
      return "";
  }
}
