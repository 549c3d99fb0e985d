import { count, plural, words } from "../words";

export const w = words(
  {
    title: "Usage", lead: "What conversations and skills took.", range: "Range", comma: ", ", days: (n: number) => plural(n, "day"), of: "Of", everybody: "everybody", me: "me", byDay: "By day", measure: "Show",
    measures: { tokens: "Tokens", cost: "Cost", turns: "Turns", loads: "Skills loaded", calls: "Calls of tools", errors: "Errors" } as Record<Measure, string>,
    errorRate: (part: string) => `${part} of the calls`, tokensOf: (input: string, output: string) => `${input} read, ${output} written`, cached: (n: string) => `${n} from the cache`,
    untold: (n: number) => `not known of ${plural(n, "answer")}, whose model told none`, noneKnown: "The models told no tokens in these days.", noPrice: "no price is known", unpriced: (n: string) => `without ${n} tokens of models whose price is not known`, asTable: "As a table", day: "Day", utc: "Days are those of UTC.", chart: (what: string, total: string, most: string, when: string) => `${what} by day: ${total} in all, most on ${when} with ${most}.`, chartNone: (what: string) => `${what} by day: none.`, noneYet: "Nothing in these days.",
    by: "Who and what", byWords: { model: "By model", agent: "By agent", user: "By person" } as Record<string, string>, model: "Model", agent: "Agent", user: "Person", noModel: "MCP clients", noAgent: "no agent in particular", gone: "gone", input: "Read", output: "Written", more: "There are more than are shown; all of them are in the totals.",
    skills: "Skills", skillsText: "Those that were used most come first. Tokens are those of their instructions.", skill: "Skill", last: "Last used", noSkills: "No skill was used", noSkillsText: "Say in a conversation \"use the skill NAME\", or give an agent some skills.", toLibrary: "To the library", all: "Show all", top: "Show the first ten", notUsed: "not in these days", clipped: (n: number) => `Of so many places only ${n} are looked at; choose one above for the others.`,
    unused: "Not used", unusedText: (n: number) => `Skills that were there for ${plural(n, "day")} or longer and were not used once. Each takes room in what agents choose from.`, unusedNone: "Every skill that was there all that time was used.",
    todo: "What you can do", todos: ["Say in the description when to use it: agents choose by that alone.", "Give it to an agent, or make it a default, where it is for all conversations.", "Hide or delete it where nobody needs it."], since: "there since", look: "Open it", empty: "Nothing was used yet", emptyText: "Begin a conversation, or connect an MCP client; a moment later it is counted here.", toChat: "To the chat", where: "Where",
  },
  {
    title: "用量", lead: "对话和技能消耗了多少。", range: "范围", comma: "，", days: (n) => `${n} 天`, of: "对象", everybody: "所有人", me: "我", byDay: "按天", measure: "显示",
    measures: { tokens: "词元", cost: "费用", turns: "回合", loads: "技能加载", calls: "工具调用", errors: "错误" },
    errorRate: (part) => `占调用的 ${part}`, tokensOf: (input, output) => `读取 ${input}，写出 ${output}`, cached: (n) => `${n} 来自缓存`,
    untold: (n) => `有 ${count(n)} 个回答的模型未告知，数量未知`, noneKnown: "这些天里模型没有告知词元数。", noPrice: "价格未知", unpriced: (n) => `不含价格未知的模型的 ${n} 词元`, asTable: "以表格显示", day: "日期", utc: "日期以 UTC 为准。", chart: (what, total, most, when) => `按天的${what}：共 ${total}，最多为 ${when} 的 ${most}。`, chartNone: (what) => `按天的${what}：无。`, noneYet: "这些天没有记录。",
    by: "构成", byWords: { model: "按模型", agent: "按智能体", user: "按人员" }, model: "模型", agent: "智能体", user: "人员", noModel: "MCP 客户端", noAgent: "未指定智能体", gone: "已不存在", input: "读取", output: "写出", more: "还有更多未显示，总计中已包含。",
    skills: "技能", skillsText: "使用最多的在最前。词元为技能说明所占用的数量。", skill: "技能", last: "最近使用", noSkills: "没有使用任何技能", noSkillsText: "在对话中说“use the skill 名称”，或为智能体配置技能。", toLibrary: "前往技能库", all: "显示全部", top: "只显示前十个", notUsed: "这些天没有使用", clipped: (n) => `位置过多，只查看其中 ${n} 个；其他请在上方选择。`,
    unused: "未使用", unusedText: (n) => `存在 ${n} 天以上但一次也没有使用的技能。它们都会占用智能体选择技能时的空间。`, unusedNone: "一直存在的技能都被使用过。",
    todo: "您可以", todos: ["在描述中说明何时使用：智能体只凭描述选择。", "把它配置给某个智能体；如适用于所有对话，可设为默认技能。", "没有人需要时，隐藏或删除它。"], since: "创建于", look: "打开", empty: "还没有用量", emptyText: "开始一次对话，或连接 MCP 客户端，稍后就会统计在这里。", toChat: "前往对话", where: "位置",
  },
);

/** What can be shown by day. */
export type Measure = "tokens" | "cost" | "turns" | "loads" | "calls" | "errors";
