import { plural, words } from "../words";

export const w = words(
  {
    code: "Code", codeOf: (what: string) => `Code: ${what}`, table: "Table", done: "Done", open: "Not done",
    picture: (alt: string) => (alt ? `Picture: ${alt}` : "Picture"), elsewhere: "Opens in a new tab: ", hidden: (code: string) => `Invisible character ${code}`,
    more: (n: number) => `Show ${plural(n, "more line")}`, line: (n: number) => `Line ${n}`, info: "Note", warn: "Warning", bad: "Danger",
    changes: (path: string) => `Changes in ${path}`, oldLine: "Old line", newLine: "New line", text: "Text", added: "added", removed: "removed", oldText: "Old text", newText: "New text",
    skipped: (n: number) => `${plural(n, "unchanged line")} not shown`, same: "Nothing differs in the text.", from: (n: number) => `From line ${n}`, noEnd: "No line break at the end of the file",
  },
  {
    code: "代码", codeOf: (what: string) => `代码：${what}`, table: "表格", done: "已完成", open: "未完成",
    picture: (alt: string) => (alt ? `图片：${alt}` : "图片"), elsewhere: "在新标签页中打开：", hidden: (code: string) => `不可见字符 ${code}`,
    more: (n: number) => `再显示 ${n} 行`, line: (n: number) => `第 ${n} 行`, info: "提示", warn: "警告", bad: "危险",
    changes: (path: string) => `${path} 的改动`, oldLine: "旧行号", newLine: "新行号", text: "内容", added: "新增", removed: "删除", oldText: "旧内容", newText: "新内容",
    skipped: (n: number) => `${n} 行未改动，已省略`, same: "文本没有差异。", from: (n: number) => `从第 ${n} 行起`, noEnd: "文件末尾没有换行符",
  },
);
