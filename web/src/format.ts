// Figures as people read them. Every one carries its unit.

/** The text where nothing is known. */
export const NONE = "–";

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** A time given in us. */
export function time(us: number | null | undefined): string {
  if (us === null || us === undefined || !Number.isFinite(us)) return NONE;
  if (us >= 1e6) return `${digits(us / 1e6)} s`;
  if (us >= 1e3) return `${digits(us / 1e3)} ms`;
  return us >= 1 || us === 0 ? `${digits(us)} µs` : `${digits(us * 1e3)} ns`;
}

/** A count; long ones with a thin space between thousands. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** A count where there is little room. */
export function short(value: number): string {
  return value >= 1e6 ? `${(value / 1e6).toFixed(0)} M` : value >= 1e4 ? `${(value / 1e3).toFixed(0)} k` : count(value);
}

/** Any number, with six digits at most. */
export function number(value: number): string {
  if (Number.isNaN(value)) return "no number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "\u2212∞";
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e9 || size < 1e-4) ? value.toExponential(3) : String(Number.isInteger(value) ? value : Number(value.toPrecision(6)));
  return text.replace("-", "\u2212");
}

/** A rate given in 1/s. */
export function rate(per_s: number | null | undefined): string {
  if (per_s === null || per_s === undefined) return NONE;
  if (per_s >= 999.5) return `${digits(per_s / 1e3)} k/s`;
  return `${per_s >= 9.95 ? per_s.toFixed(0) : per_s.toFixed(1)} /s`;
}

/** How long something has been so, given in ms. */
export function uptime(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Memory given in KiB. */
export function memory(kib: number | null): string {
  if (kib === null) return NONE;
  return kib >= 1024 ? `${digits(kib / 1024)} MiB` : `${kib} KiB`;
}

/** A number with a sign that keeps its width. */
export function signed(value: number, decimals: number): string {
  const text = Math.abs(value).toFixed(decimals);
  const negative = value < 0 && Number(text) !== 0;
  return `${negative ? "\u2212" : "\u2007"}${text}`;
}

/** The time of day of an event. */
export function clock(unix_ms: number): string {
  const date = new Date(unix_ms);
  const two = (part: number) => part.toString().padStart(2, "0");
  const ms = date.getMilliseconds().toString().padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

/** A word of the runtime as people read it. */
export function words(word: string): string {
  return word.replaceAll("_", " ");
}
