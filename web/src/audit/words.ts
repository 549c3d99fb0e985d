import { plural, words } from "../words";

export const w = words(
  {
    title: "Audit", lead: "Who did what, and what was refused. The newest comes first.", leadOwn: "What you did, and what was done to what is yours. Choose a group that you own to see what happened there.",
    actor: "Who", actorHint: "A name, or an id of somebody who is gone.", action: "What", anything: "anything", place: "Where", everywhere: "everywhere", own: "what I did", mine: "mine", subject: "Which", subjectHint: "As it stands in the list: an id, Kind/name or session/ID.", decision: "Decision", any: "any",
    decisions: { allowed: "allowed", denied: "refused", asked: "asked first" } as Record<string, string>, filter: "Show", reset: "Show all", when: "When", details: "Details", none: "Nothing fits", noneText: "No record has all that you asked for. Take something out of the filters.", empty: "Nothing happened yet", emptyText: "Each change, each run of code and each refusal is written down here.",
    exportAs: "Save what is shown", csv: "As CSV", json: "As JSON", shown: (n: number, more: boolean) => (more ? `${plural(n, "record")} shown. There are more.` : `${plural(n, "record")}. That is all.`), more: "Show older records", who: "Who", only: (what: string) => `Show only ${what}`,
    unknown: (name: string) => `Nobody is called ${name}`, unknownText: "Check the name; of somebody who is gone, give the id.",
    actions: {
      "sign-in": "sign in", "skill.upload": "upload a skill", "skill.change": "change a skill", "skill.review": "review code", "skill.publish": "publish a skill", "skill.hide": "hide or show a skill", "skill.delete": "delete a skill", "skill.rate": "rate a skill", "skill.download": "download a skill",
      "skill.read": "look at a skill", "skill.use": "use a skill", "skill.run": "run code of a skill", "skill.ran": "end of a skill's code", "skill.served": "serve tools of a skill", "skill.bind": "name a skill",
      "kind.read": "look at an agent", "kind.use": "talk with an agent", "kind.apply": "make or change an agent", "kind.delete": "delete an agent", "server.apply": "make or change a server or model", "server.restart": "restart a server", "server.accept_tools": "accept tools of a server", "mcp.connect": "connect an MCP client",
      "session.begin": "begin a conversation", "session.message": "say something", "session.cancel": "end a turn", "session.rename": "rename a conversation", "session.delete": "delete a conversation", "session.read": "read a conversation", "session.write": "write in a conversation", "session.stop": "stop a conversation", "session.load": "load a skill by hand", "session.unload": "unload a skill by hand", "session.compact": "shorten a conversation", "session.file.write": "keep a file", "session.file.delete": "delete a file",
      "ask.answer": "answer a question", "default.write": "change defaults", "notice.read": "read notices", "grant.read": "look at grants", "grant.write": "change what is not asked about", "secret.list": "look at names of secrets", "secret.write": "set or delete a secret", "secret.grant": "grant or take back a secret",
      "group.create": "make a group", "group.read": "look at a group", "group.members": "change members", "group.manage": "rename a group", "group.delete": "delete a group", "user.list": "look at users", "user.read": "look at a user", "user.write": "change an account", "user.manage": "manage an account",
      "token.list": "look at tokens", "token.make": "make a token", "token.end": "withdraw a token or sign out", "settings.read": "look at settings", "settings.write": "change settings", "usage.read": "look at usage", "audit.read": "look at the audit log", "hub.operate": "operate the hub", "tool.call": "call a tool", "tool.approve": "agree to a tool",
    } as Record<string, string>,
  },
  {
    title: "审计", lead: "谁做了什么，哪些被拒绝。最新的在最前。", leadOwn: "您所做的操作，以及与您的内容有关的操作。选择您拥有的群组可查看其中的记录。",
    actor: "操作者", actorHint: "用户名；对已不存在的人请填编号。", action: "操作", anything: "任意", place: "位置", everywhere: "所有位置", own: "我的操作", mine: "我的内容", subject: "对象", subjectHint: "与列表中的写法一致：编号、Kind/名称或 session/编号。", decision: "结果", any: "任意",
    decisions: { allowed: "允许", denied: "拒绝", asked: "先行询问" }, filter: "筛选", reset: "显示全部", when: "时间", details: "详情", none: "没有匹配的记录", noneText: "没有同时满足所有条件的记录。请减少筛选条件。", empty: "还没有记录", emptyText: "每次更改、代码运行和拒绝都会记录在这里。",
    exportAs: "保存当前显示的内容", csv: "存为 CSV", json: "存为 JSON", shown: (n, more) => (more ? `已显示 ${n} 条记录，还有更多。` : `共 ${n} 条记录。`), more: "显示更早的记录", who: "操作者", only: (what) => `仅显示 ${what}`,
    unknown: (name) => `没有名为 ${name} 的用户`, unknownText: "请检查用户名；对已不存在的人请填编号。",
    actions: {
      "sign-in": "登录", "skill.upload": "上传技能", "skill.change": "更改技能", "skill.review": "审核代码", "skill.publish": "发布技能", "skill.hide": "隐藏或显示技能", "skill.delete": "删除技能", "skill.rate": "评价技能", "skill.download": "下载技能",
      "skill.read": "查看技能", "skill.use": "使用技能", "skill.run": "运行技能代码", "skill.ran": "技能代码结束", "skill.served": "技能提供工具", "skill.bind": "引用技能",
      "kind.read": "查看智能体", "kind.use": "与智能体对话", "kind.apply": "创建或更改智能体", "kind.delete": "删除智能体", "server.apply": "创建或更改服务器或模型", "server.restart": "重启服务器", "server.accept_tools": "接受服务器的工具", "mcp.connect": "连接 MCP 客户端",
      "session.begin": "开始对话", "session.message": "发送消息", "session.cancel": "结束回合", "session.rename": "重命名对话", "session.delete": "删除对话", "session.read": "读取对话", "session.write": "写入对话", "session.stop": "停止对话", "session.load": "手动加载技能", "session.unload": "手动卸载技能", "session.compact": "精简对话", "session.file.write": "保存文件", "session.file.delete": "删除文件",
      "ask.answer": "回答提问", "default.write": "更改默认技能", "notice.read": "查看通知", "grant.read": "查看授权", "grant.write": "更改免询问授权", "secret.list": "查看密钥名称", "secret.write": "设置或删除密钥", "secret.grant": "授予或收回密钥",
      "group.create": "创建群组", "group.read": "查看群组", "group.members": "更改成员", "group.manage": "重命名群组", "group.delete": "删除群组", "user.list": "查看用户", "user.read": "查看用户资料", "user.write": "更改账户", "user.manage": "管理账户",
      "token.list": "查看令牌", "token.make": "创建令牌", "token.end": "撤销令牌或退出登录", "settings.read": "查看设置", "settings.write": "更改设置", "usage.read": "查看用量", "audit.read": "查看审计日志", "hub.operate": "运维服务器", "tool.call": "调用工具", "tool.approve": "同意工具",
    },
  },
);
