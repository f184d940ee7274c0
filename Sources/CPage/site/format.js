// Numbers, times and addresses as people read them.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Bytes with a unit and three digits: `12.4 MiB`. An en dash if they are unknown. */
export function bytes(count) {
  if (count === null || count === undefined || Number.isNaN(count)) return "–";
  let value = count;
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(value >= 10 ? 1 : 2)} ${units[unit]}`;
}

/** Bytes per second. */
export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? "–" : `${bytes(perSecond)}/s`;
}

/** A whole number with separators. */
export function count(number) {
  return number === null || number === undefined ? "–" : numbers.format(Math.round(number));
}

/** `one` or `many` things. */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Seconds: `0.25 s`, `3 min 20 s`, `2 d 4 h`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const parts = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => seconds >= size);
  let rest = Math.round(seconds);
  return parts.slice(first, first + 2).map(([name, size]) => {
    const value = Math.floor(rest / size);
    rest -= value * size;
    return value ? `${value} ${name}` : "";
  }).filter(Boolean).join(" ");
}

/** Seconds in one unit, or in two for more precision. */
function roughly(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 36_000 || (seconds >= 86_400 && seconds < 3 * 86_400)) return duration(seconds);
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** The approximate remaining seconds: `3 min left`. Empty if unknown. */
export function left(seconds) {
  if (!(seconds > 0) || !Number.isFinite(seconds)) return null;
  const isMinutes = seconds >= 60 && seconds < 3600;
  return `${isMinutes ? `${Math.round(seconds / 60)} min` : roughly(Math.max(1, seconds))} left`;
}

/** How long ago or until: `12 s ago`, `in 3 min`, `in 2 h 5 min`. */
export function relative(time) {
  if (!time) return "–";
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const text = roughly(Math.abs(seconds));
  return seconds < 0 ? `${text} ago` : `in ${text}`;
}

// Created once, because creation takes longer than all formatting.
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const numbers = new Intl.NumberFormat("en");

/** Date and time in the reader's time zone. */
export function moment(time) {
  return time ? moments.format(new Date(time)) : "–";
}

/** The time of day with milliseconds. */
export function clock(time) {
  const date = new Date(time);
  const two = (number) => String(number).padStart(2, "0");
  const milliseconds = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`;
}

/** A part of the whole, 0 to 1, as a percentage. */
export function percent(fraction) {
  return fraction === null || fraction === undefined ? "–" : `${Math.floor(fraction * 100)} %`;
}

/** The last part of a URL's path, or its host if it has none. */
export function fileName(url) {
  try {
    const { host, pathname } = new URL(url);
    const last = pathname.split("/").filter(Boolean).pop();
    return last ? decodeURIComponent(last) : host;
  } catch {
    return url ?? "–";
  }
}

/** The target of a request: its URL or object. */
export function addressOf(request) {
  return request?.bucket === undefined ? request?.url : `s3://${request.bucket}/${request.key}`;
}

/**
 * What a task is called: its description, its client id or the name in its address. `others` are those of the three that
 * are not the title.
 */
export function namesOf({ taskDescription, clientTaskId, originalRequest }) {
  const names = [taskDescription, clientTaskId, fileName(addressOf(originalRequest))].filter(Boolean);
  const [title, ...others] = new Set(names);
  return { title, others };
}

/** A URL's host. */
export function hostOf(url) {
  try {
    return new URL(url).host;
  } catch {
    return "";
  }
}
