import { language } from "./language";

/** count formats 12345 as 12,345. */
export const count = (n: number): string => n.toLocaleString(language.value);

/** short formats 12345 as 12K. */
export const short = (n: number): string =>
  n.toLocaleString(language.value, { notation: "compact", maximumFractionDigits: 1 });

/** dollars formats 0.1234 as $0.1234. */
export const dollars = (n: number) =>
  n.toLocaleString(language.value, {
    style: "currency",
    currency: "USD",
    maximumFractionDigits: n > 0 && n < 1 ? 4 : 2,
  });

/** size formats a number of bytes as 1.2 kB. */
export function size(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  let i = 0;
  for (; bytes >= 1000 && i < units.length - 1; i++) bytes /= 1000;
  return `${bytes.toLocaleString(language.value, { maximumFractionDigits: bytes < 10 && i ? 1 : 0 })} ${units[i]}`;
}

/** formatTime formats a time with its date. */
export const formatTime = (time: string | Date): string =>
  new Date(time).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "short" });

/** ago formats a time relative to now, such as "5 minutes ago". */
export function ago(time: string | Date, now = Date.now()): string {
  const seconds = (new Date(time).getTime() - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language.value, { numeric: "auto" });
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [
    [60, "second"],
    [60, "minute"],
    [24, "hour"],
    [30, "day"],
    [12, "month"],
    [Infinity, "year"],
  ];
  let n = seconds;
  for (const [many, unit] of steps) {
    if (Math.abs(n) < many || unit === "year")
      return format.format(unit === "second" ? Math.trunc(n / 10) * 10 : Math.trunc(n), unit);
    n /= many;
  }
  return "";
}
