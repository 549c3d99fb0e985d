/** The reasons why a draft does not rank first. */
interface Advice {
  /** The words of the request that the draft lacks. */
  missing: string[];
  /** Those that the first skill has. */
  elsewhere: string[];
}

const dull = new Set(
  (
    "a an and are as at be by can could do does for from give have how i in into is it its me make my need of on or please should some than that the their them there this to up use using want was we what when where which who will with would you your " +
    "做 的 了 是 在 我 我们 你 您 请 把 被 给 和 与 或 一个 一下 一份 这 这个 那 那个 帮 帮我 要 想 想要 需要 可以 如何 怎么 什么 吗 呢 吧 为 对 从 到 里 中 上 下 个 有"
  ).split(" "),
);

/** wordsOf returns the significant words of a text. */
function wordsOf(text: string): string[] {
  const lower = text.toLowerCase();
  const found =
    "Segmenter" in Intl
      ? [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(lower)]
          .filter((s) => s.isWordLike)
          .map((s) => s.segment)
      : (lower.match(/[\p{L}\p{N}]+/gu) ?? []);
  return [...new Set(found.filter((w) => !dull.has(w) && (w.length > 1 || /\p{Script=Han}|\p{N}/u.test(w))))];
}

/** stem removes common English endings, as searches do. */
const stem = (word: string) =>
  word.length > 4 ? word.replace(/(ies|ing|ed|es|s|ly|e|y)$/, "") : word.replace(/s$/, "");

const says = (text: string) => {
  const all = new Set(wordsOf(text.replaceAll("-", " ")).map(stem));
  const lower = text.toLowerCase();
  return (word: string) => all.has(stem(word)) || (/\p{Script=Han}/u.test(word) && lower.includes(word));
};

/** joined joins words of scripts without spaces. */
function joined(request: string, words: string[]): string[] {
  const out: string[] = [];
  for (const word of words) {
    const last = out.at(-1);
    if (last && /\p{Script=Han}/u.test(word) && request.includes(last + word)) out[out.length - 1] = last + word;
    else out.push(word);
  }
  return out;
}

/** adviceOn compares a request with the searchable text of a draft. */
export function adviceOn(request: string, draft: string, first: string | undefined): Advice {
  const inDraft = says(draft),
    inFirst = says(first ?? "");
  const missing = wordsOf(request).filter((word) => !inDraft(word));
  return {
    missing: joined(request.toLowerCase(), missing),
    elsewhere: joined(request.toLowerCase(), missing.filter(inFirst)),
  };
}
