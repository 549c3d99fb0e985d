import { language, plural, words } from "../words";

export const we = words(
  {
    leave: "Tab indents. Press Escape, then Tab, to leave the editor.", problems: (n: number) => plural(n, "problem"), line: (n: number) => `Line ${n}`, whole: "The whole", fix: "Fix it",
    error: "Error", warning: "Warning", info: "Note",
  },
  {
    leave: "Tab 键用于缩进。先按 Esc 再按 Tab 可离开编辑器。", problems: (n: number) => `${n} 个问题`, line: (n: number) => `第 ${n} 行`, whole: "整体", fix: "修复",
    error: "错误", warning: "警告", info: "提示",
  },
);

/** The words of CodeMirror's own panels, which are English by themselves. */
export const panelWords = (): Record<string, string> =>
  language.value === "zh"
    ? {
        Find: "查找", Replace: "替换", next: "下一个", previous: "上一个", all: "全选", "match case": "区分大小写", "by word": "全字匹配", regexp: "正则表达式", replace: "替换", "replace all": "全部替换", close: "关闭",
        "Go to line": "转到行", go: "前往", "current match": "当前匹配项", "on line": "所在行", "replaced match on line $": "已替换第 $ 行的匹配项", "replaced $ matches": "已替换 $ 处", Diagnostics: "问题", "No diagnostics": "没有问题", Completions: "补全", "Folded lines": "已折叠的行", "Unfolded lines": "已展开的行", to: "至", "folded code": "已折叠的代码", unfold: "展开", "Fold line": "折叠此行", "Unfold line": "展开此行", "Control character": "控制字符",
      }
    : {};
