import { count, plural, words } from "../words";

const stars = (n: number) => n.toFixed(1);

export const w = words(
  {
    library: "Library", lead: "Skills teach agents how to do a kind of work. Here are those that you can use.", waitingList: "Getting the skills",
    compose: "Write one", add: "Add skills", upload: "Upload a skill", import: "Import from elsewhere",
    search: "Search skills", searchHint: "Search by what you want to do", sort: "Order", shape: "View", asCards: "As cards", asTable: "As a table",
    sorts: { relevance: "Best match", name: "By name", updated: "Changed last", used: "Used most", rating: "Rated best", tokens: "Longest" },
    scopes: "Where", filters: "Filters", allScopes: "All", mine: "Mine", everybody: "Public", aGroup: "a group", you: "you",
    code: "Code", withCode: "Has code", withoutCode: "Instructions only", review: "Review", reviews: { pending: "Waiting", approved: "Approved", rejected: "Refused" },
    origin: "Origin", imported: "Imported", uploaded: "Uploaded", tag: "Tag", unused: "Unused for 30 days", hidden: "Hidden", clear: "Clear filters",
    all: (n: number) => `${plural(n, "skill")}.`, found: (n: number, all: number) => `${count(n)} of ${plural(all, "skill")}.`, notAll: (n: number) => `These are the first ${count(n)} by name; search finds the others.`,
    more: (n: number) => `Show ${count(n)} more`, shown: (n: number, all: number) => `${count(n)} of ${count(all)} are shown`,
    noCode: "Instructions", noCodeHint: "It has no code: there is nothing to run, and nothing to review",
    codeStates: { pending: "Code waits for review", approved: "Code approved", rejected: "Code refused" },
    reviewHints: { pending: "Its instructions can be used; its code runs once a reviewer has approved it", approved: "A reviewer approved its code, so it may run", rejected: "A reviewer refused its code; its instructions can be used" },
    rated: (mean: number, n: number) => `${stars(mean)} of 5 from ${plural(n, "rating")}`, default: "Default", defaultHint: "Your conversations begin with it",
    tokens: (n: string) => `${n} tokens`, files: (n: number) => plural(n, "file"), used: (n: number) => (n ? `used ${n === 1 ? "once" : `${count(n)} times`} in 30 days` : "not used in 30 days"),
    name: "Name", state: "State", rating: "Rating", tokensHead: "Tokens", usedHead: "Uses, 30 days", updated: "Changed", none: "none yet",
    noneFor: (q: string) => `No skill fits “${q}”`, noneLike: "No skill is like that", noneText: "Other words may find it, or fewer filters.", everywhere: "Search everywhere",
    noneYet: "No skill yet", noneHere: "No skill here yet", noneYetText: "A skill is a folder with a SKILL.md: instructions that an agent loads when it needs them, with scripts and files beside them. Upload one, take one from a repository, or write your own.",
  },
  {
    library: "技能库", lead: "技能教会智能体如何完成一类工作。这里是您可以使用的技能。", waitingList: "正在获取技能",
    compose: "编写技能", add: "添加技能", upload: "上传技能", import: "从别处导入",
    search: "搜索技能", searchHint: "按您想做的事搜索", sort: "排序", shape: "视图", asCards: "卡片", asTable: "表格",
    sorts: { relevance: "最匹配", name: "按名称", updated: "最近更改", used: "使用最多", rating: "评分最高", tokens: "最长" },
    scopes: "范围", filters: "筛选", allScopes: "全部", mine: "我的", everybody: "公开", aGroup: "某个群组", you: "您",
    code: "代码", withCode: "含代码", withoutCode: "仅说明", review: "审核", reviews: { pending: "待审核", approved: "已批准", rejected: "已拒绝" },
    origin: "来源", imported: "导入的", uploaded: "上传的", tag: "标签", unused: "30 天未使用", hidden: "已隐藏", clear: "清除筛选",
    all: (n: number) => `共 ${count(n)} 个技能。`, found: (n: number, all: number) => `${count(all)} 个技能中的 ${count(n)} 个。`, notAll: (n: number) => `这里是按名称排列的前 ${count(n)} 个，其余可通过搜索找到。`,
    more: (n: number) => `再显示 ${count(n)} 个`, shown: (n: number, all: number) => `已显示 ${count(n)} / ${count(all)}`,
    noCode: "仅说明", noCodeHint: "不含代码：没有可运行的内容，无需审核",
    codeStates: { pending: "代码待审核", approved: "代码已批准", rejected: "代码已拒绝" },
    reviewHints: { pending: "说明可以使用；代码需经审核批准后才能运行", approved: "审核人已批准其代码，可以运行", rejected: "审核人拒绝了其代码；说明仍可使用" },
    rated: (mean: number, n: number) => `${stars(mean)} 分（满分 5 分），${count(n)} 人评分`, default: "默认", defaultHint: "您的对话开始时即带有它",
    tokens: (n: string) => `${n} 词元`, files: (n: number) => `${count(n)} 个文件`, used: (n: number) => (n ? `30 天内使用 ${count(n)} 次` : "30 天未使用"),
    name: "名称", state: "状态", rating: "评分", tokensHead: "词元", usedHead: "30 天使用", updated: "更改时间", none: "暂无",
    noneFor: (q: string) => `没有与“${q}”相符的技能`, noneLike: "没有符合条件的技能", noneText: "换个说法或减少筛选条件再试。", everywhere: "在全部范围内搜索",
    noneYet: "还没有技能", noneHere: "这里还没有技能", noneYetText: "技能是一个含有 SKILL.md 的文件夹：智能体在需要时加载其中的说明，旁边可以有脚本和文件。您可以上传、从代码仓库导入，或自己编写。",
  },
);
