import { words } from "../words";

export const w = words(
  {
    title: "Questions", lead: "What agents, tools and servers wait for you to answer. The first answer counts, here or in any other window.",
    none: "Nothing waits for you", noneText: "When an agent wants to use a tool that may change something, or a server wants to know something of you, the question is here and in its conversation.",
    approval: "Permission", elicitation: "A server asks", form: "A form", action: "For the page",
    allow: "Allow once", session: "Allow in this conversation", always: "Always allow", decline: "Decline", send: "Send", more: "More ways to allow",
    tool: "Tool", server: "Server", skill: "Skill", why: "Why you are asked", args: "Arguments", noArgs: "no arguments", edit: "Change the arguments", editing: "Arguments, as JSON", unedit: "Leave them as they were",
    exact: "Allowing more than once covers exactly these arguments, no others.", notJSON: "This is no JSON object", feedback: "What the agent is to know", feedbackHint: "Optional, as: use the staging database instead",
    until: (time: string) => `until ${time}`, asked: "Asked", open: "Open the conversation", answer: "Answer", later: "Later",
    waits: (n: number) => (n === 1 ? "A question waits for you" : `${n} questions wait for you`),
    settled: { accepted: "Allowed", declined: "Declined", cancelled: "Taken back", expired: "Nobody answered in time" } as Record<string, string>,
    elsewhere: "It was answered already, perhaps in another window.", waiting: "Getting the questions", sent: "Answered",
    pageDoes: "This is done by the page itself, when the conversation is open.", unknownAction: (name: string) => `the page of the hub does not know the action ${name}; it knows render_mermaid`,
    noCode: "data has no code: send {code: the text of the diagram}",
  },
  {
    title: "待答问题", lead: "智能体、工具和服务器正在等待您的回答。无论在哪个窗口，以第一个回答为准。",
    none: "没有待答的问题", noneText: "当智能体要使用可能改变内容的工具，或者服务器需要向您了解信息时，问题会出现在这里以及相应的对话中。",
    approval: "授权", elicitation: "服务器提问", form: "表单", action: "由页面执行",
    allow: "允许一次", session: "在此对话中允许", always: "始终允许", decline: "拒绝", send: "提交", more: "更多允许方式",
    tool: "工具", server: "服务器", skill: "技能", why: "询问原因", args: "参数", noArgs: "无参数", edit: "修改参数", editing: "参数（JSON）", unedit: "恢复原参数",
    exact: "多次允许仅适用于完全相同的参数。", notJSON: "这不是 JSON 对象", feedback: "告诉智能体", feedbackHint: "可选，例如：请改用测试数据库",
    until: (time: string) => `截止 ${time}`, asked: "提问于", open: "打开对话", answer: "回答", later: "稍后",
    waits: (n: number) => `有 ${n} 个问题等待您回答`,
    settled: { accepted: "已允许", declined: "已拒绝", cancelled: "已撤回", expired: "超时无人回答" } as Record<string, string>,
    elsewhere: "这个问题已有回答，可能是在另一个窗口中。", waiting: "正在获取问题", sent: "已回答",
    pageDoes: "打开对话后，由页面自动执行。", unknownAction: (name: string) => `页面不认识操作 ${name}，只支持 render_mermaid`,
    noCode: "data 中没有 code：请发送 {code: 图表文本}",
  },
);
