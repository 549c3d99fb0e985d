/** The longest texts whose lines are compared; of longer ones all is shown as changed. */
const most = 2000;

/** How one text became another, as a unified diff of one file. */
export function unified(before: string, after: string): string {
  const a = before ? before.split("\n") : [];
  const b = after ? after.split("\n") : [];
  const rows = a.length + b.length > most ? [...a.map((l) => "-" + l), ...b.map((l) => "+" + l)] : compared(a, b);
  return hunks(rows).join("\n");
}

/** Lines of both texts with a sign: what is in both, only in the old, only in the new. */
function compared(a: string[], b: string[]): string[] {
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width); // of the longest part that both have from there on
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const rows: string[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      rows.push(" " + a[i]);
      i++;
      j++;
    } else if (i < a.length && (j === b.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) rows.push("-" + a[i++]);
    else rows.push("+" + b[j++]);
  }
  return rows;
}

const around = 3;

/** Signed lines as hunks, with some lines around each change. */
function hunks(rows: string[]): string[] {
  const near = rows.map((_, i) => rows.slice(Math.max(0, i - around), i + around + 1).some((r) => r[0] !== " "));
  const out: string[] = [];
  let head = -1;
  let at = [1, 1];
  let counts = [0, 0];
  const end = () => {
    if (head >= 0) out[head] = `@@ -${counts[0] ? at[0]! - counts[0]! : at[0]! - 1},${counts[0]} +${counts[1] ? at[1]! - counts[1]! : at[1]! - 1},${counts[1]} @@`;
    head = -1;
  };
  rows.forEach((row, i) => {
    const isOld = row[0] !== "+";
    const isNew = row[0] !== "-";
    if (near[i] && head < 0) {
      head = out.push("") - 1;
      counts = [0, 0];
    }
    if (!near[i]) end();
    else {
      out.push(row);
      counts = [counts[0]! + Number(isOld), counts[1]! + Number(isNew)];
    }
    at = [at[0]! + Number(isOld), at[1]! + Number(isNew)];
  });
  end();
  return out;
}
