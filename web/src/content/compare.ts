type Line = [mark: " " | "-" | "+", text: string];

/** Two texts compared by lines, with three lines around each change. */
export function unified(a: string, b: string, around = 3): string {
  const all = compare(split(a), split(b));
  const near = all.map(() => false);
  all.forEach(([mark], i) => mark !== " " && near.fill(true, Math.max(i - around, 0), i + around + 1));
  let old = 1, young = 1, out = "";
  for (let i = 0; i < all.length; ) {
    if (!near[i]) {
      old++, young++, i++;
      continue;
    }
    const hunk: Line[] = [];
    while (i < all.length && near[i]) hunk.push(all[i++]!);
    const gone = hunk.filter(([m]) => m !== "+").length, come = hunk.filter(([m]) => m !== "-").length;
    out += `@@ -${gone ? old : old - 1},${gone} +${come ? young : young - 1},${come} @@\n${hunk.map(([m, t]) => m + t).join("\n")}\n`;
    old += gone, young += come;
  }
  return out;
}

const split = (text: string): string[] => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

/** How many steps are looked at before all is taken as changed. */
const mostSteps = 2000;

/** The shortest way from one list of lines to another (Myers), once what is alike at both ends is set aside. */
function compare(a: string[], b: string[]): Line[] {
  let head = 0, tail = 0;
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  while (tail < Math.min(a.length, b.length) - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const keep = (lines: string[]): Line[] => lines.map((t) => [" ", t]);
  return [...keep(a.slice(0, head)), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...keep(a.slice(a.length - tail))];
}

function middle(a: string[], b: string[]): Line[] {
  const far = new Map<number, number>([[1, 0]]), trace: Map<number, number>[] = [];
  for (let d = 0; d <= Math.min(a.length + b.length, mostSteps); d++) {
    trace.push(new Map(far));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && far.get(k - 1)! < far.get(k + 1)!) ? far.get(k + 1)! : far.get(k - 1)! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      far.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace);
    }
  }
  return [...a.map((t): Line => ["-", t]), ...b.map((t): Line => ["+", t])];
}

function walkBack(a: string[], b: string[], trace: Map<number, number>[]): Line[] {
  const out: Line[] = [];
  let x = a.length, y = b.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const far = trace[d]!, k = x - y;
    const from = k === -d || (k !== d && far.get(k - 1)! < far.get(k + 1)!) ? k + 1 : k - 1;
    const px = d ? far.get(from)! : 0, py = d ? px - from : 0;
    while (x > px && y > py) out.push([" ", a[(x--, y--, x)]!]);
    if (d) out.push(x === px ? ["+", b[--y]!] : ["-", a[--x]!]);
  }
  return out.reverse();
}
