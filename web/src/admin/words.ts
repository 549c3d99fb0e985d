import { plural, words } from "../words";

export const w = words(
  {
    title: "Administration", section: "Section", only: "This page is for administrators", onlyText: "Your groups are in the settings.", toGroups: "To your groups",
    tabs: { users: "Users", groups: "Groups", skills: "Skills switch", "sign-in": "Sign-in by groups", audit: "Audit log", health: "Health" }, actions: "Actions", save: "Save", saved: "Saved", back: "Back",
    // users
    usersText: "Who has an account. Delete one only when nothing of theirs is needed; disabling keeps it all and lets nobody in.", makeUser: "Make a user", name: "Name", display: "Displayed name", email: "Email", password: "Password", passwordHint: "Leave it empty for who signs in by your organisation.",
    isAdmin: "Administrator of the hub", isAdminHint: "May do everything here, but read what others say in conversations.", made: (n: string) => `${n} can sign in now`, state: "State", seen: "Last there", never: "never", disabled: "disabled", active: "active", admin: "administrator", noPassword: "no password",
    disable: "Disable", enable: "Let in again", disableTitle: (n: string) => `Disable ${n}?`, disableText: "The person is signed out everywhere and tokens are refused. What they made stays.", disabledDone: "Disabled", enabledDone: "May sign in again",
    makeAdmin: "Make administrator", unAdmin: "Take the administration away", unAdminText: "The person keeps the account, and manages no more than their own and their groups.", unAdminOwn: "It is your own: you leave this page, and somebody else has to give it back to you.", adminDone: "Changed", setPassword: "Set another password", setPasswordText: "The person is signed out everywhere. Tell them the password in a safe way; they can change it in the settings.", passwordSet: "The password is set",
    tokens: "Tokens and sign-ins", tokensOf: (n: string) => `Tokens and sign-ins of ${n}`, noTokens: "There are no tokens.", signIns: "Signed in at", noSignIns: "Signed in nowhere.", endSignIns: "Sign out everywhere", ended: "Signed out everywhere", audit: "What they did",
    remove: "Delete", removeTitle: (n: string) => `Delete ${n}?`, removeText: "Tokens, sign-ins and memberships are gone. Who still has skills, agents or conversations cannot be deleted: disable the account instead, or move and delete these first.", removed: "The user is deleted",
    find: "Find a user by name", findIt: "Find", showAll: "Show all", single: "This hub serves one person, who signs in nowhere. To have accounts, start it as: loadout serve --accounts",
    // switch
    skillsText: "One switch for all skills of the hub. Groups have one of their own, which can allow no more than this one.", scope: "For", ofHub: "the whole hub", ofGroup: (g: string) => `the group ${g}`,
    on: "Skills are on", off: "Skills are switched off", onText: (s: string) => `Skills load and run for ${s}, as far as the list below lets them.`,
    offText: (s: string) => `No skill is there for ${s}. What ran was stopped; conversations are told so, and messages are refused until skills are on again.`,
    switchOff: "Switch all skills off", switchOn: "Switch skills on", offTitle: (s: string) => `Switch all skills off for ${s}?`,
    offWill: ["No skill can be found, loaded or run, on all nodes, within two seconds.", "Turns and code of skills that are under way are stopped.", "New messages are refused until you switch skills on again.", "Nothing is deleted. It is written to the audit log with your name."],
    turnedOff: "Skills are switched off", turnedOn: "Skills are on",
    allow: "Allowed skills", allowText: "Where there is at least one line, only skills that a line fits are there. With none, all are.", allowHint: "One a line: a name, a pattern as docs-*, or either with versions as pdf@>=1.2.0.", allowAll: "All skills are allowed.", allowSome: (n: number) => `Only what ${plural(n, "line")} fit${n === 1 ? "s" : ""} is allowed.`, allowSaved: "The list is in force",
    changed: "Somebody changed it in the meantime", changedText: "What you see here is what was typed by you. Read the newest state, and change that.", readAgain: "Read the newest state",
    mayNot: "Maintainers and owners of the group change this.",
    // rules
    rulesText: "Who signs in by your organisation is put into groups by these rules, at each sign-in. A group that a rule names is left to the rules: what is set by hand for these people is gone at their next sign-in.", claimed: "Group of the organisation", group: "Group here", role: "Role", gives: "Administrator",
    noGroup: "none", addRule: "Add a rule", removeRule: "Remove the rule", noRules: "No rules", noRulesText: "Without a rule, who signs in by your organisation is in no group, and is let in only where the hub was started with --oidc-everyone.", saveRules: "Save the rules", noProvider: "No provider is configured, so the rules wait: start the hub with --oidc-issuer and --oidc-client.",
    // retention
    auditText: "The audit log says who did what, and what was refused. Old records can be removed after a time.", keepFor: "Keep records for", forEver: "for ever", days: (n: number) => plural(n, "day"), otherDays: "Days", custom: "another number of days", auditLog: "Read the audit log", retentionSaved: "Saved. Older records are removed with the next upkeep.", lessTitle: (n: number) => `Keep records for ${plural(n, "day")} only?`, lessText: "Older records are removed for good. That cannot be taken back.", keepLess: "Remove older records",
    // health
    healthText: "How this node is. With several nodes, each answers for itself.", ready: "Ready", notReady: "Not ready", ask: "Ask again", parts: { database: "Database", bus: "Notes between nodes", disk: "Disk" } as Record<string, string>, version: "Version", metrics: "Metrics for Prometheus are at /metrics, with an administrator's token of the scope read.", mode: "Mode", modes: { single: "one person", accounts: "accounts" } as Record<string, string>, address: "Address", provider: "Provider for sign-ins", yes: "yes", no: "no",
  },
  {
    title: "管理", section: "分区", only: "此页面仅供管理员使用", onlyText: "您的群组在设置中。", toGroups: "查看我的群组",
    tabs: { users: "用户", groups: "群组", skills: "技能开关", "sign-in": "按组登录", audit: "审计日志", health: "运行状况" }, actions: "操作", save: "保存", saved: "已保存", back: "返回",
    usersText: "拥有账户的人。确定不再需要其任何内容时才删除；停用会保留全部内容并禁止登录。", makeUser: "创建用户", name: "用户名", display: "显示名称", email: "邮箱", password: "密码", passwordHint: "通过组织账户登录的用户请留空。",
    isAdmin: "服务器管理员", isAdminHint: "可以进行所有操作，但不能查看他人的对话内容。", made: (n) => `${n} 现在可以登录`, state: "状态", seen: "最近活动", never: "从未", disabled: "已停用", active: "正常", admin: "管理员", noPassword: "无密码",
    disable: "停用", enable: "重新启用", disableTitle: (n) => `停用 ${n}？`, disableText: "此人会在所有位置退出登录，令牌将被拒绝。其创建的内容会保留。", disabledDone: "已停用", enabledDone: "可以再次登录",
    makeAdmin: "设为管理员", unAdmin: "取消管理员", unAdminText: "此人保留账户，只能管理自己和所在群组的内容。", unAdminOwn: "这是您自己的权限：您将离开此页面，只能由其他管理员恢复。", adminDone: "已更改", setPassword: "设置新密码", setPasswordText: "此人会在所有位置退出登录。请以安全的方式告知密码；之后可在设置中自行修改。", passwordSet: "密码已设置",
    tokens: "令牌与登录", tokensOf: (n) => `${n} 的令牌与登录`, noTokens: "没有令牌。", signIns: "已登录于", noSignIns: "没有登录。", endSignIns: "退出所有登录", ended: "已退出所有登录", audit: "操作记录",
    remove: "删除", removeTitle: (n) => `删除 ${n}？`, removeText: "令牌、登录和群组成员关系都会删除。仍有技能、智能体或对话的用户不能删除：请改为停用，或先移走并删除这些内容。", removed: "用户已删除",
    find: "按用户名查找", findIt: "查找", showAll: "显示全部", single: "这个服务器只为一人服务，无需登录。要使用账户，请用 loadout serve --accounts 启动。",
    skillsText: "控制服务器上所有技能的总开关。各群组有自己的开关，但不能超出这里允许的范围。", scope: "对象", ofHub: "整个服务器", ofGroup: (g) => `群组 ${g}`,
    on: "技能已开启", off: "技能已关闭", onText: (s) => `${s}可以加载和运行技能，范围以下方列表为准。`,
    offText: (s) => `${s}没有任何技能可用。运行中的内容已停止，对话中会有提示；重新开启之前不接受新消息。`,
    switchOff: "关闭所有技能", switchOn: "开启技能", offTitle: (s) => `为${s}关闭所有技能？`,
    offWill: ["两秒内，所有节点上的技能都无法查找、加载或运行。", "正在进行的回合和技能代码会被停止。", "在您重新开启之前，不接受新消息。", "不会删除任何内容。审计日志会记录您的这次操作。"],
    turnedOff: "技能已关闭", turnedOn: "技能已开启",
    allow: "允许的技能", allowText: "只要有一行，就只有与某一行匹配的技能可用；没有任何行则全部可用。", allowHint: "每行一个：名称、通配模式（如 docs-*），或附带版本要求（如 pdf@>=1.2.0）。", allowAll: "允许所有技能。", allowSome: (n) => `仅允许与 ${n} 行匹配的技能。`, allowSaved: "列表已生效",
    changed: "期间有人修改过", changedText: "这里显示的是您输入的内容。请读取最新状态后再修改。", readAgain: "读取最新状态",
    mayNot: "由群组的维护者和所有者更改。",
    rulesText: "通过组织账户登录的人在每次登录时会按这些规则加入群组。规则中提到的群组由规则管理：手动为这些人所做的设置会在其下次登录时失效。", claimed: "组织中的组", group: "这里的群组", role: "角色", gives: "管理员",
    noGroup: "无", addRule: "添加规则", removeRule: "移除规则", noRules: "没有规则", noRulesText: "没有规则时，通过组织账户登录的人不属于任何群组，且仅当服务器以 --oidc-everyone 启动时才能进入。", saveRules: "保存规则", noProvider: "尚未配置登录服务，规则暂不生效：请用 --oidc-issuer 和 --oidc-client 启动服务器。",
    auditText: "审计日志记录谁做了什么以及哪些操作被拒绝。可以在一段时间后清除旧记录。", keepFor: "记录保留", forEver: "永久", days: (n) => `${n} 天`, otherDays: "天数", custom: "其他天数", auditLog: "查看审计日志", retentionSaved: "已保存。更早的记录会在下次维护时清除。", lessTitle: (n) => `只保留 ${n} 天的记录？`, lessText: "更早的记录会被永久清除，无法恢复。", keepLess: "清除更早的记录",
    healthText: "此节点的状况。有多个节点时，各节点分别回答。", ready: "就绪", notReady: "未就绪", ask: "重新检查", parts: { database: "数据库", bus: "节点间消息", disk: "磁盘" }, version: "版本", metrics: "Prometheus 指标位于 /metrics，需要具有 read 范围的管理员令牌。", mode: "模式", modes: { single: "单人", accounts: "账户" }, address: "地址", provider: "组织登录", yes: "有", no: "无",
  },
);
