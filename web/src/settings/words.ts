import { plural, words } from "../words";

export const w = words(
  {
    title: "Settings", section: "Section",
    tabs: { profile: "Profile", password: "Password", "sign-ins": "Sign-ins", tokens: "API tokens", secrets: "Secrets", grants: "Not asked about", notices: "Notices", defaults: "My defaults", groups: "Groups", appearance: "Appearance" },
    heads: { you: "You", access: "Access", work: "Work" },
    name: "Name", since: "Since", you: "You", save: "Save", saved: "Saved", remove: "Remove", actions: "Actions", add: "Add", never: "never", back: "Back", created: "Made", by: "by", what: "What",
    single: "This hub serves you alone: nobody signs in, so there are no passwords, sign-ins and tokens. To share it, start it as: loadout serve --accounts",
    // profile
    display: "Displayed name", displayHint: "How others see you. Your name to sign in stays as it is.", email: "Email", emailHint: "Seen by you and administrators. No mail is sent there.",
    admin: "Administrator", memberOf: "Groups", noGroups: "You are in no group.",
    // password
    current: "Current password", fresh: "New password", setPassword: "Change the password", passwordSet: "The password is changed",
    passwordSays: "It signs you out in every other browser; this one stays signed in. API tokens go on: withdraw them where they may be known.",
    noPassword: "You sign in by your organisation and have no password here. With one you can sign in by name too.",
    // sign-ins
    signIns: "Where you are signed in. End the others if you do not know one of them, and change your password.", browser: "Browser", began: "Signed in", seen: "Last there", ends: "Ends",
    here: "this one", endOthers: "Sign out everywhere else", endedOthers: "You are signed out everywhere else", onlyHere: "You are signed in nowhere else.",
    // tokens
    tokens: "Programs and MCP clients come in by a token. It can do no more than you, and only what its scopes say.", makeToken: "Make a token", tokenName: "What it is for", tokenNameHint: "You know it by this, as \"laptop\" or \"CI\".",
    scopes: "What it may do", expires: "Good for", days: (n: number) => plural(n, "day"), forever: "as long as it is not withdrawn", foreverHint: "Who finds it can use it for good. Take a date where you can.",
    presets: "Fill in for", presetMCP: "an MCP client", presetUpload: "uploads from CI", presetRead: "reading",
    scopeNeeded: "Choose at least one.", scopeText: {
      read: "read: skills, agents, usage, audit", write: "write: upload and change skills and agents, set secrets", run: "run: have code of skills run", chat: "chat: hold conversations and answer their questions",
      mcp: "mcp: connect an MCP client", review: "review: approve code, grant secrets, be asked no more", admin: "admin: accounts, groups, settings and tokens, as far as you may",
    } as Record<string, string>,
    tokenMade: "Here is the token. Copy it now: it is not shown again.", tokenUse: "Send it as the header Authorization: Bearer TOKEN.", mcpAt: "MCP clients connect to", doneCopy: "I have it",
    noTokens: "There are no tokens", noTokensText: "A token lets a program or an MCP client work in your name, within limits that you choose.", begins: "Begins with", used: "Last used", notUsed: "not used yet", expired: "expired", until: "until",
    withdraw: "Withdraw", withdrawTitle: (n: string) => `Withdraw the token ${n}?`, withdrawText: "Whatever uses it is refused from now on. It cannot be given back.", withdrawn: "The token is withdrawn",
    // secrets
    secrets: "Values that servers, models and skills need, as keys. They are kept sealed: nobody can read one again, and only what you grant one to gets it.", owner: "Whose", mine: "Yours", everybody: "Everybody's",
    addSecret: "Add a secret", secretName: "Name", secretNameHint: "As it is written in ${{secrets.NAME}} or ${{user.NAME}}.", value: "Value", valueHint: "It cannot be read back, only replaced.", keep: "Keep it", kept: "The value is kept",
    noSecrets: "There are no secrets", noSecretsText: "Where a server or a model says ${{secrets.NAME}}, the value comes from here once you granted it.", replace: "Replace the value", updated: "Set", grantedTo: "Granted to", grant: "Grant",
    notGranted: "Nothing has it yet.", forget: "Forget it", forgetTitle: (n: string) => `Forget ${n}?`, forgetText: "The value is gone, and who had it is refused. It cannot be taken back.", forgotten: "The secret is forgotten", takeBack: "Take back", takenBack: "It was taken back",
    grantTitle: (n: string) => `Who gets ${n}?`, grantText: "It is granted to exactly what is shown, by its digest. When that changes, it has to be granted anew.", kind: "Kind", kinds: { server: "MCP server", Model: "Model", Skill: "Skill" } as Record<string, string>, thing: "Which one", choose: "Choose…", nothing: "There is none that you see.",
    goesTo: "The value would go to", asks: "asks for it", doesNotAsk: "It does not name this secret, so it would not get to use it as it is now.", digest: "Digest", givenOut: "It is granted", wants: "asks for this secret",
    // grants
    grantsText: "When you said \"always\", or asked not to be asked again, it is kept here. It counts for the tool exactly as it was then.", tool: "Tool", origin: "From", scope: "For", scopeWords: { once: "one call", session: "one conversation", always: "always" } as Record<string, string>,
    revoke: "Be asked again", revoked: "You will be asked again", noGrants: "You are asked about everything that is risky", noGrantsText: "When an agent wants to use a risky tool you are asked. Answer \"always\" there, and it is listed here to take back.", conversation: "conversation",
    // notices
    noticesText: "What happened to skills that you use or made.", unseen: "Not seen", all: "All", markSeen: "Mark as seen", markAll: "Mark all as seen", noNotices: "Nothing new", noNoticesText: "When a skill you use gets a new version, or a review of yours is decided, it is said here.",
    notice: {
      "skill.version": (n) => `${n.name} has version ${n.number}.`, "skill.upstream": (n) => `${n.name} has changed at the place it was imported from.`, "skill.removed": (n) => `${n.name} was deleted.`,
      "skill.review": (n) => `Version ${n.number} of ${n.name} was ${n.review === "approved" ? "approved" : n.review === "rejected" ? "rejected" : "put back to review"}.`,
    } as Record<string, (n: Told) => string>, look: "Look at it", isNew: "new",
    // defaults
    defaultsText: "Skills that your new conversations begin with. Groups and administrators may add some for their people.", whose: "Whose defaults", addDefault: "Add a skill", skill: "Skill", preload: "Load it from the start", preloadHint: "Else it is only on offer.",
    preloaded: "loaded from the start", offered: "on offer", exceptions: "Not with", exceptionsHint: "One a line, as mode:plan, agent:NAME or project:NAME.", noDefaults: "There are no defaults", noDefaultsText: "Add a skill that every conversation should have, as house rules for texts.", defaultSet: "It is a default now", defaultGone: "It is no default any more", hiddenSkill: "a skill that you do not see any more",
    begins2: "What a new conversation of yours begins with now", nothingBegins: "No skill is given to it from the start.", edit: "Change",
    // appearance
    theme: "Theme", themes: { system: "As the system", light: "Light", dark: "Dark" }, language: "Language", here2: "Kept in this browser.",
    // groups
    groupsText: "A group shares skills, agents, defaults and secrets. What a group has reaches all its members.", newGroup: "Make a group", groupName: "Name", groupDisplay: "Displayed name", description: "Description", groupMade: "The group is made; you are its owner", members: "Members", role: "Role", yourRole: "Your role:",
    noGroupsTitle: "You are in no group", noGroupsText: "Administrators make groups, and their owners and maintainers say who is in them.", noGroupsAdmin: "Make one for each team that shares skills.", addMember: "Add a member", added: "Added", removeMember: "Remove", leave: "Leave the group", leaveTitle: (g: string) => `Leave ${g}?`, leaveText: "You lose what the group shares. An owner or a maintainer can take you in again.", removeTitle: (n: string) => `Take ${n} out of the group?`, removeText: "What the group shares is not there for this person any more.", left: "You have left the group", taken: "Taken out of the group",
    deleteGroup: "Delete the group", deleteTitle: (n: string) => `Delete the group ${n}?`, deleteText: "Its memberships, settings and secrets are gone. A group that still has skills or agents is not deleted.", deleted: "The group is deleted", about: "About", switchTab: "Skills switch", noMembers: "Nobody",
    roleText: { reporter: "reads and uses what the group has", developer: "also uploads, and manages what they made", maintainer: "also manages what is there, reviews, and says who is in it", owner: "also renames and deletes the group, and reads its audit log" } as Record<string, string>,
    owners: "A group keeps at least one owner.",
  },
  {
    title: "设置", section: "分区",
    tabs: { profile: "个人资料", password: "密码", "sign-ins": "登录记录", tokens: "API 令牌", secrets: "密钥", grants: "免询问授权", notices: "通知", defaults: "我的默认技能", groups: "群组", appearance: "外观" },
    heads: { you: "您", access: "访问", work: "工作" },
    name: "名称", since: "加入时间", you: "您", save: "保存", saved: "已保存", remove: "移除", actions: "操作", add: "添加", never: "从不", back: "返回", created: "创建于", by: "操作者", what: "内容",
    single: "这个服务器只为您一人服务，无需登录，因此没有密码、登录记录和令牌。要与他人共用，请用 loadout serve --accounts 启动。",
    display: "显示名称", displayHint: "其他人看到的名称。登录用的用户名不变。", email: "邮箱", emailHint: "只有您和管理员可见。不会向它发送邮件。",
    admin: "管理员", memberOf: "所在群组", noGroups: "您不在任何群组中。",
    current: "当前密码", fresh: "新密码", setPassword: "修改密码", passwordSet: "密码已修改",
    passwordSays: "修改后，您在其他浏览器中都会退出登录；当前浏览器保持登录。API 令牌仍然有效，如可能泄露请另行撤销。",
    noPassword: "您通过组织账户登录，在这里没有密码。设置密码后也可以用用户名登录。",
    signIns: "您已登录的位置。如果有不认识的，请结束其他登录并修改密码。", browser: "浏览器", began: "登录时间", seen: "最近活动", ends: "到期",
    here: "当前", endOthers: "退出其他所有登录", endedOthers: "其他登录均已退出", onlyHere: "您没有在其他位置登录。",
    tokens: "程序和 MCP 客户端通过令牌访问。令牌的权限不超过您本人，且仅限于所选范围。", makeToken: "创建令牌", tokenName: "用途", tokenNameHint: "便于您识别，例如“笔记本”或“CI”。",
    scopes: "允许的操作", expires: "有效期", days: (n) => `${n} 天`, forever: "撤销之前一直有效", foreverHint: "任何拿到它的人都可以一直使用。尽量选择有期限的。",
    presets: "快速填写", presetMCP: "MCP 客户端", presetUpload: "CI 上传", presetRead: "只读",
    scopeNeeded: "请至少选择一项。", scopeText: {
      read: "read：读取技能、智能体、用量和审计", write: "write：上传和修改技能、智能体，设置密钥", run: "run：运行技能的代码", chat: "chat：进行对话并回答其中的提问",
      mcp: "mcp：连接 MCP 客户端", review: "review：批准代码、授予密钥、免除询问", admin: "admin：在您的权限内管理账户、群组、设置和令牌",
    },
    tokenMade: "这是新令牌。请立即复制：之后不再显示。", tokenUse: "使用请求头 Authorization: Bearer TOKEN 发送。", mcpAt: "MCP 客户端连接到", doneCopy: "已保存",
    noTokens: "还没有令牌", noTokensText: "令牌让程序或 MCP 客户端在您设定的范围内以您的名义工作。", begins: "开头", used: "最近使用", notUsed: "尚未使用", expired: "已过期", until: "有效至",
    withdraw: "撤销", withdrawTitle: (n) => `撤销令牌“${n}”？`, withdrawText: "使用它的程序将立即被拒绝，且无法恢复。", withdrawn: "令牌已撤销",
    secrets: "服务器、模型和技能所需的值，例如密钥。它们加密保存：任何人都无法再读取，只有您授予的对象可以使用。", owner: "归属", mine: "您的", everybody: "所有人的",
    addSecret: "添加密钥", secretName: "名称", secretNameHint: "即 ${{secrets.NAME}} 或 ${{user.NAME}} 中的名称。", value: "值", valueHint: "之后无法查看，只能替换。", keep: "保存", kept: "值已保存",
    noSecrets: "还没有密钥", noSecretsText: "服务器或模型中写有 ${{secrets.NAME}} 时，在您授权后会使用这里的值。", replace: "替换值", updated: "设置于", grantedTo: "已授予", grant: "授予",
    notGranted: "尚未授予任何对象。", forget: "删除", forgetTitle: (n) => `删除 ${n}？`, forgetText: "值会被删除，使用它的对象将被拒绝，且无法恢复。", forgotten: "密钥已删除", takeBack: "收回", takenBack: "授权已收回",
    grantTitle: (n) => `把 ${n} 授予谁？`, grantText: "只授予下面显示的对象，以其摘要为准。对象变化后需要重新授予。", kind: "类型", kinds: { server: "MCP 服务器", Model: "模型", Skill: "技能" }, thing: "对象", choose: "请选择…", nothing: "没有您可见的对象。",
    goesTo: "该值将发送到", asks: "需要它", doesNotAsk: "它没有引用这个密钥，目前不会用到。", digest: "摘要", givenOut: "已授予", wants: "需要这个密钥",
    grantsText: "您选择“始终允许”或“不再询问”时会记录在这里。只对当时那个版本的工具有效。", tool: "工具", origin: "来源", scope: "范围", scopeWords: { once: "一次调用", session: "一次对话", always: "始终" },
    revoke: "重新询问", revoked: "之后会再次询问您", noGrants: "所有有风险的操作都会询问您", noGrantsText: "智能体要使用有风险的工具时会询问您。选择“始终允许”后，会列在这里以便收回。", conversation: "对话",
    noticesText: "与您使用或创建的技能有关的消息。", unseen: "未读", all: "全部", markSeen: "标为已读", markAll: "全部标为已读", noNotices: "没有新通知", noNoticesText: "您使用的技能有新版本，或您的审核有结果时，会在这里通知。",
    notice: {
      "skill.version": (n) => `${n.name} 有了版本 ${n.number}。`, "skill.upstream": (n) => `${n.name} 在其导入来源处有更新。`, "skill.removed": (n) => `${n.name} 已被删除。`,
      "skill.review": (n) => `${n.name} 的版本 ${n.number}${n.review === "approved" ? "已通过审核" : n.review === "rejected" ? "未通过审核" : "重新进入审核"}。`,
    }, look: "查看", isNew: "新",
    defaultsText: "您的新对话开始时拥有的技能。群组和管理员也可以为其成员添加。", whose: "谁的默认技能", addDefault: "添加技能", skill: "技能", preload: "开始时即加载", preloadHint: "否则只是可供选用。",
    preloaded: "开始时加载", offered: "可供选用", exceptions: "例外", exceptionsHint: "每行一个，如 mode:plan、agent:NAME 或 project:NAME。", noDefaults: "还没有默认技能", noDefaultsText: "添加每次对话都应具备的技能，例如写作规范。", defaultSet: "已设为默认技能", defaultGone: "已从默认技能中移除", hiddenSkill: "您已看不到的技能",
    begins2: "您的新对话现在会以这些技能开始", nothingBegins: "开始时没有任何技能。", edit: "修改",
    theme: "主题", themes: { system: "跟随系统", light: "浅色", dark: "深色" }, language: "语言", here2: "保存在此浏览器中。",
    groupsText: "群组共享技能、智能体、默认技能和密钥。群组拥有的内容对所有成员生效。", newGroup: "创建群组", groupName: "名称", groupDisplay: "显示名称", description: "说明", groupMade: "群组已创建，您是所有者", members: "成员", role: "角色", yourRole: "您的角色：",
    noGroupsTitle: "您不在任何群组中", noGroupsText: "群组由管理员创建，由其所有者和维护者决定成员。", noGroupsAdmin: "为每个共享技能的团队创建一个群组。", addMember: "添加成员", added: "已添加", removeMember: "移出", leave: "退出群组", leaveTitle: (g) => `退出 ${g}？`, leaveText: "您将无法使用群组共享的内容。所有者或维护者可以再次邀请您。", removeTitle: (n) => `把 ${n} 移出群组？`, removeText: "此人将无法再使用群组共享的内容。", left: "您已退出群组", taken: "已移出群组",
    deleteGroup: "删除群组", deleteTitle: (n) => `删除群组 ${n}？`, deleteText: "其成员关系、设置和密钥都会删除。仍有技能或智能体的群组不能删除。", deleted: "群组已删除", about: "概况", switchTab: "技能开关", noMembers: "没有成员",
    roleText: { reporter: "查看和使用群组的内容", developer: "还可以上传，并管理自己创建的内容", maintainer: "还可以管理群组内容、审核并决定成员", owner: "还可以重命名和删除群组，查看其审计记录" },
    owners: "群组至少保留一位所有者。",
  },
);

/** What a notice tells, for its text. */
interface Told {
  name?: string;
  number?: number;
  review?: string;
}
