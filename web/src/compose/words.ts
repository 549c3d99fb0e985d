import { count, plural, words } from "../words";

/** The texts of the composer. */
export const w = words(
  {
    compose: "Compose a skill",
    lead: "A skill is a folder with a SKILL.md: fields that say what it is for, and instructions that a model reads when it is needed.",
    newSkill: "New skill", edit: (name: string) => `Edit ${name}`, untitled: "No name yet",
    preparing: "Getting the files", gone: "This piece of work is not in this browser", goneText: "Work that is not saved stays in the browser in which it was written. Begin with a template, or go on with what is kept below.", toStart: "To the beginning",

    begin: "Begin with a template", use: "Use this",
    templates: {
      instructions: ["Instructions", "Steps for a task, as loadout new makes them. The usual beginning."],
      references: ["With reference files", "Short instructions, and long material in files that are read when needed."],
      script: ["With a script", "Instructions and a program that does the exact part. It runs once a reviewer approved it."],
      command: ["A command for people", "Begun by a person with words behind it, never by a model."],
      blank: ["A SKILL.md of yours", "An empty text to paste one into."],
    } as Record<string, [string, string]>,
    existing: "From a skill that exists", findSkill: "Name, tag or a word of the description", asVersion: "New version", asCopy: "Copy", noSkills: "No skill fits.",
    noSkillsYet: "There are no skills yet. Begin with a template.", keptWork: "Work that is not saved", keptHint: "In this browser only.", goOn: "Go on", throwAway: "Throw away", onSkill: "a new version", onNew: "a new skill",
    throwTitle: "Throw this work away?", throwText: (name: string) => `What was written on ${name} and is not saved is gone then.`,

    unsaved: "Not saved", allSaved: "As saved", keptHere: "Kept in this browser", notKept: "Too large to be kept in this browser: save it before you leave",
    restored: (ago: string) => `You wrote this ${ago} and did not save it.`, fromSaved: "Begin again from the saved version",
    moved: (n: number, base: number) => `Version ${n} was saved since you began with version ${base}. Saving yours puts it in its place: look at the changes.`,
    mayNot: "You may not add versions to this skill. You can try it here, and save it as a skill of your own.", saveCopy: "Make it a skill of my own",
    save: "Save…", tryIt: "Try it…", more: "More", download: "Download as ZIP", discard: "Throw changes away", stop: "Back to the library",
    findShort: "Found?", panes: { fields: "Fields", files: "Files", check: "Check", find: "Would it be found?", text: "Text" } as Record<"fields" | "files" | "check" | "find" | "text", string>,
    views: "Parts of the skill", textOf: (path: string) => `Text of ${path}`, keys: "Ctrl+S saves. Escape, then Tab leaves the text.",

    checking: "Checking", awayText: "The hub cannot be reached. You can go on writing; it is checked when the hub is back.",
    strict: "Follows the specification", lenient: "Can be used here, but other programs may refuse it", refused: "Cannot be used yet",
    strictText: "Every rule of the Agent Skills specification holds.", lenientText: "It loads on this hub. It breaks rules of the specification, which stricter programs insist on; what is marked below says which.", refusedText: "What is marked as an error has to be mended first.",
    wontSave: "It cannot be saved as it is; the errors say why.", verdictOf: "Verdict", problems: (n: number) => plural(n, "remark"), noProblems: "Nothing to mend.", findings: (n: number) => plural(n, "finding"), tokens: (n: string) => `about ${n} tokens`,
    nameFree: "Name is free", nameTaken: "Name is taken", takenText: "Another skill has this name there.", takenMine: "Make this its next version", takenOpen: "Look at that skill",
    toMend: "What to mend", severity: { error: "Error", warning: "Warning", info: "Remark" } as Record<string, string>, fix: "Mend", renameFix: (name: string) => `Rename to ${name}`, mended: "Mended",
    toModel: "How a model is told of it", toModelHint: (n: string) => `About ${n} tokens, in every conversation that offers it. From this line alone the model decides.`, toModelNone: "A model is not told of it: people start it.", toModelLater: "Shown once the skill can be used.",
    loadedText: (n: string) => `The instructions have about ${n} tokens.`, loadedLong: "That is a lot: move long material into files under references/, which are read when needed.",
    asks: "What it asks for", asksNone: "Nothing beyond instructions.", codeReview: "It brings code. A reviewer has to approve these very files before it runs.", codeRuns: "It brings code, and a reviewer approved these very files: it may run.",
    kinds: {
      scripts: "Programs", provider: "A provider of tools", network: "Network", secret: "Secret", inject: "Secret for a host", workspace: "Writing in the workspace", limit: "Limit", isolation: "Isolation",
      server: "MCP server", variable: "Variable of a server", tool: "Tool without asking", package: "Package", needs: "Skill", model: "Model",
    } as Record<string, string>,
    scan: "What a scan found", scanNone: "The scan found nothing.", scanAdvice: "It is advice for who reviews, not a verdict.", unscanned: "Not everything was looked at.",
    levels: { info: "Note", low: "Low", medium: "Medium", high: "High" } as Record<string, string>,

    requests: "Requests, one a line", requestsHint: "Write what people would ask for, in their words. At most 20 are looked at. They stay in this browser with the skill.", requestsPlace: "Summarise the minutes of a meeting\nWhat was decided last week?",
    findLead: "Which skill does a search find for a request? It ranks by words of name, description and tags, as the hub does.", findEmpty: "Write one or more requests, and see at which place your skill comes.", findLater: "This is tried once the skill can be used: see Check.",
    searching: "Searching", first: "Found first", place: (n: number) => `Place ${n}`, notFound: "Not found", draft: "this draft", nobody: "No skill is found for this.", showHits: (n: number) => `${plural(n, "skill")} found`,
    missing: (list: string) => `The draft does not say: ${list}. If the skill is for this, put these words, or the sentence they are from, into the description.`,
    elsewhere: (name: string, list: string) => `${name} comes first and says ${list}.`,
    weaker: (name: string) => `It says every word, but ${name} says them more often or in a shorter text. Name this case near the beginning of the description, and drop what is not about when to use it.`,
    weakerAlone: "It says these words only in passing. Name this case in the description.", found: (n: number, all: number) => `First for ${n} of ${all} requests`,

    about: "What it is", how: "How it is used", needs: "What it uses", moreFields: "More fields",
    labels: {
      name: "Name", description: "Description", displayName: "Display name", version: "Version", tags: "Tags", userInvocable: "People may start it by its name", disableModelInvocation: "Only people start it: hide it from models",
      argumentHint: "Hint for arguments", preload: "Load it when a conversation begins", model: "Model", allowedTools: "Tools it may use without asking", dependencies: "Skills it needs", config: "Settings for its tools",
      license: "License", compatibility: "Compatibility", author: "Author", category: "Category", bindShells: "Kinds of face it is for", whenToUse: "When to use it",
    } as Record<string, string>,
    hints: {
      name: "Lower-case letters, digits and hyphens; also the name of its folder.", description: "What it does and when to use it, with the words people would use. From this a model chooses.", displayName: "For people, in lists.", version: "As 1.0.0.", tags: "Separated by commas.",
      userInvocable: "", disableModelInvocation: "", argumentHint: "What a person writes behind the name, as [file] [language].", preload: "Its instructions are then there from the first message, at their cost.", model: "Used while it is loaded. Leave it empty to keep the conversation's own.",
      allowedTools: "Separated by blanks, as: Read Bash(git:*)", dependencies: "Separated by commas, as: pdf, charts@^1.2", config: "YAML, as: unit: metric", license: "A name, or a file in the skill.", compatibility: "What it needs: programs, network, a product.", author: "", category: "", bindShells: "Empty is all of them.", whenToUse: "Some programs read this beside the description.",
    } as Record<string, string>,
    counter: (n: number, max: number) => `${n} of ${max} characters`, over: (n: number) => `${plural(n, "character")} too many`, badMap: "This is not a map of settings: write lines as key: value. The text keeps what was there before.",
    otherFields: (list: string) => `Also in the text, as it stands there: ${list}.`,
    formStale: "The fields cannot be read", formInvalid: (line: number, why: string) => `Line ${line}: ${why} The form shows what was there before, and waits until the text is mended.`, formUnclosed: "The fields at the beginning are not closed by a line ---. The form waits until the text has one.", invalidShape: "the fields are not lines of the form key: value.",
    formNone: "The text has no fields yet. What you write here puts them at its beginning.", noSkillFile: "There is no SKILL.md.", addSkillFile: "Add one",

    files: (n: number, size: string) => `${plural(n, "file")}, ${size}`, addFile: "New file", upload: "Upload", drop: "Or drop files here.", path: "Path in the skill", pathHint: "As references/api.md, scripts/run.py or assets/logo.png.", add: "Add", rename: "Rename", renameTitle: (path: string) => `Rename ${path}`, remove: "Delete", removeTitle: (path: string) => `Delete ${path}?`, removeText: "It is taken out of the draft. Versions that were saved keep it.", actionsOf: (path: string) => `Actions for ${path}`,
    faults: { empty: "Give the file a path.", shape: "A path has names between single slashes, without . and ..", taken: "There is a file of this name.", through: "A file and a folder cannot have the same name." } as Record<string, string>,
    uploaded: (n: number) => `${plural(n, "file")} added`, tooMany: (files: number, bytes: string) => `A skill has at most ${plural(files, "file")} and ${bytes}.`, replace: (n: number) => `${plural(n, "file")} replaced`, picture: (path: string) => `The picture ${path}`, binary: "This file is no text. It stays as it is; upload another to replace it.", broken: "This picture cannot be shown.",

    saveTitle: "Save the skill", saveVersionTitle: (name: string) => `Save a new version of ${name}`, where: "Where it is kept", own: "Your own skills", everybody: "Everybody", inGroup: (name: string) => `Group ${name}`, saveNew: "Save the skill", saveVersion: "Save the version",
    becomes: (n: number) => `It becomes version number ${n}, and the current one.`, versionField: "What you call this version", sameVersion: (v: string) => `The current version is called ${v} too.`, noVersion: "Versions are counted anyway; a name of your own is optional.", suggest: "Suggested",
    whatChanges: "What changes", nothingChanges: "Nothing differs from the current version.", howNames: { added: "added", removed: "deleted", changed: "changed" } as Record<string, string>, notText: "No text: it is not compared by lines.", fromNow: (n: number) => `Compared with version ${n}, the current one`,
    reviewAfter: "Its code runs once a reviewer approved it; instructions can be used at once.", mayNotHere: "You may not keep a skill there.", savedNew: (name: string) => `${name} is saved`, savedVersion: (name: string, n: number) => `Version ${n} of ${name} is saved`, cannotSave: "It cannot be saved yet",

    tryTitle: "Try it in a conversation", tryText: "A conversation begins in which this draft, as it is now, is among the skills, in place of a saved one of its name. It opens in the chat; your work stays here.", say: "What you say first", sayHint: "Empty begins without a message.", tryBegin: "Begin", trySession: (name: string) => `Trial of ${name}`, trySay: (name: string) => `Use the skill ${name}.`,
    willWork: "What works: its instructions, and reading its files.", wontWork: "What does not run before a review:", wontNone: "All of it can be tried.", wontRunFiles: "programs in it", wontTools: "tools it brings", wontServers: "MCP servers it brings",
    language: "en",
  },
  {
    compose: "编写技能",
    lead: "技能是一个含有 SKILL.md 的文件夹：字段说明它的用途，正文是模型在需要时阅读的指令。",
    newSkill: "新技能", edit: (name: string) => `编辑 ${name}`, untitled: "尚未命名",
    preparing: "正在获取文件", gone: "此浏览器中没有这份草稿", goneText: "未保存的草稿只留在编写它的浏览器里。请从模板开始，或继续下面保留的草稿。", toStart: "回到开始",

    begin: "从模板开始", use: "使用",
    templates: {
      instructions: ["指令", "一项任务的步骤，与 loadout new 生成的相同。最常用的起点。"],
      references: ["带参考文件", "指令简短，长内容放在按需阅读的文件中。"],
      script: ["带脚本", "指令加一个完成精确部分的程序。经审核批准后才能运行。"],
      command: ["供人使用的命令", "由人带参数启动，模型不会自行启动。"],
      blank: ["已有的 SKILL.md", "空白文本，可直接粘贴。"],
    } as Record<string, [string, string]>,
    existing: "从已有技能开始", findSkill: "名称、标签或描述中的词", asVersion: "新版本", asCopy: "复制", noSkills: "没有符合的技能。",
    noSkillsYet: "还没有技能，请从模板开始。", keptWork: "未保存的草稿", keptHint: "只在此浏览器中。", goOn: "继续", throwAway: "丢弃", onSkill: "新版本", onNew: "新技能",
    throwTitle: "丢弃这份草稿？", throwText: (name: string) => `${name} 中未保存的内容将会丢失。`,

    unsaved: "未保存", allSaved: "与已保存的一致", keptHere: "已留在此浏览器", notKept: "内容太大，无法留在此浏览器：离开前请先保存",
    restored: (ago: string) => `这是您${ago}编写、尚未保存的内容。`, fromSaved: "从已保存的版本重新开始",
    moved: (n: number, base: number) => `您从版本 ${base} 开始之后，版本 ${n} 已保存。保存您的版本会取代它：请先查看改动。`,
    mayNot: "您不能为此技能添加版本。可以在这里试用，并另存为自己的技能。", saveCopy: "另存为我的技能",
    save: "保存…", tryIt: "试用…", more: "更多", download: "下载 ZIP", discard: "丢弃改动", stop: "返回技能库",
    findShort: "能找到？", panes: { fields: "字段", files: "文件", check: "检查", find: "能被找到吗？", text: "文本" } as Record<"fields" | "files" | "check" | "find" | "text", string>,
    views: "技能的各部分", textOf: (path: string) => `${path} 的文本`, keys: "Ctrl+S 保存。先按 Escape，再按 Tab 离开文本。",

    checking: "正在检查", awayText: "无法连接 hub。您可以继续编写，恢复后会重新检查。",
    strict: "符合规范", lenient: "可在此使用，但其他程序可能拒绝", refused: "暂时不能使用",
    strictText: "符合 Agent Skills 规范的全部规则。", lenientText: "它能在此 hub 上加载，但违反了规范中的规则，更严格的程序会拒绝；具体见下方标记。", refusedText: "须先修正标为错误的问题。",
    wontSave: "目前不能保存，原因见错误。", verdictOf: "结论", problems: (n: number) => `${n} 条提示`, noProblems: "没有需要修正的问题。", findings: (n: number) => `${n} 项扫描发现`, tokens: (n: string) => `约 ${n} 词元`,
    nameFree: "名称可用", nameTaken: "名称已被占用", takenText: "那里已有同名技能。", takenMine: "作为它的新版本", takenOpen: "查看该技能",
    toMend: "需要修正", severity: { error: "错误", warning: "警告", info: "提示" } as Record<string, string>, fix: "修正", renameFix: (name: string) => `重命名为 ${name}`, mended: "已修正",
    toModel: "模型看到的介绍", toModelHint: (n: string) => `约 ${n} 词元，出现在每个提供它的对话中。模型只凭这一行作决定。`, toModelNone: "不会告诉模型：由人启动。", toModelLater: "技能可用后显示。",
    loadedText: (n: string) => `指令约 ${n} 词元。`, loadedLong: "偏多：请把长内容移到 references/ 下按需阅读的文件中。",
    asks: "它要求什么", asksNone: "除指令外别无要求。", codeReview: "它带有代码，须由审核者批准这些文件后才能运行。", codeRuns: "它带有代码，且这些文件已获批准，可以运行。",
    kinds: {
      scripts: "程序", provider: "工具提供者", network: "网络", secret: "密钥", inject: "用于主机的密钥", workspace: "写入工作区", limit: "限额", isolation: "隔离",
      server: "MCP 服务器", variable: "服务器变量", tool: "无须询问的工具", package: "软件包", needs: "技能", model: "模型",
    } as Record<string, string>,
    scan: "扫描发现", scanNone: "扫描未发现问题。", scanAdvice: "这是给审核者的建议，不是结论。", unscanned: "并非所有内容都已扫描。",
    levels: { info: "说明", low: "低", medium: "中", high: "高" } as Record<string, string>,

    requests: "请求，每行一条", requestsHint: "用人们自己的话写出他们会提的请求，最多检查 20 条。它们随技能留在此浏览器。", requestsPlace: "总结会议纪要\n上周决定了什么？",
    findLead: "对一条请求，搜索会找到哪个技能？与 hub 一样，按名称、描述和标签中的词排序。", findEmpty: "写一条或多条请求，看看您的技能排在第几位。", findLater: "技能可用后才能测试：见“检查”。",
    searching: "正在搜索", first: "排在首位", place: (n: number) => `第 ${n} 位`, notFound: "未找到", draft: "本草稿", nobody: "没有找到任何技能。", showHits: (n: number) => `找到 ${n} 个技能`,
    missing: (list: string) => `草稿中没有：${list}。如果技能适用于此，请把这些词或所在的句子写进描述。`,
    elsewhere: (name: string, list: string) => `排在首位的 ${name} 提到了 ${list}。`,
    weaker: (name: string) => `它含有全部词语，但 ${name} 提到得更多或文字更短。请在描述开头写明这种情形，删去与何时使用无关的内容。`,
    weakerAlone: "它只是顺带提到这些词。请在描述中写明这种情形。", found: (n: number, all: number) => `${all} 条请求中有 ${n} 条排在首位`,

    about: "基本信息", how: "使用方式", needs: "所需资源", moreFields: "更多字段",
    labels: {
      name: "名称", description: "描述", displayName: "显示名称", version: "版本", tags: "标签", userInvocable: "人可以按名称启动", disableModelInvocation: "只由人启动：对模型隐藏",
      argumentHint: "参数提示", preload: "对话开始时即加载", model: "模型", allowedTools: "无须询问即可使用的工具", dependencies: "依赖的技能", config: "工具设置",
      license: "许可证", compatibility: "兼容性", author: "作者", category: "类别", bindShells: "适用的智能体类型", whenToUse: "何时使用",
    } as Record<string, string>,
    hints: {
      name: "小写字母、数字和连字符；也是文件夹名。", description: "它做什么、何时使用，用人们会说的词。模型据此选择。", displayName: "在列表中给人看。", version: "例如 1.0.0。", tags: "用逗号分隔。",
      userInvocable: "", disableModelInvocation: "", argumentHint: "人在名称后写什么，例如 [file] [language]。", preload: "指令从第一条消息起就在，也会占用词元。", model: "加载期间使用。留空则沿用对话的模型。",
      allowedTools: "用空格分隔，例如：Read Bash(git:*)", dependencies: "用逗号分隔，例如：pdf, charts@^1.2", config: "YAML，例如：unit: metric", license: "名称，或技能中的文件。", compatibility: "需要什么：程序、网络、产品。", author: "", category: "", bindShells: "留空表示全部。", whenToUse: "有些程序会与描述一起阅读。",
    } as Record<string, string>,
    counter: (n: number, max: number) => `${n} / ${max} 个字符`, over: (n: number) => `超出 ${n} 个字符`, badMap: "这不是设置映射：请按“键: 值”逐行书写。文本中仍保留之前的内容。",
    otherFields: (list: string) => `文本中还有（保持原样）：${list}。`,
    formStale: "无法读取字段", formInvalid: (line: number, why: string) => `第 ${line} 行：${why} 表单显示之前的内容，修正文本后恢复。`, formUnclosed: "开头的字段没有用 --- 行结束。补上后表单恢复。", invalidShape: "字段不是“键: 值”的形式。",
    formNone: "文本还没有字段。在这里填写会加到开头。", noSkillFile: "没有 SKILL.md。", addSkillFile: "添加",

    files: (n: number, size: string) => `${n} 个文件，${size}`, addFile: "新建文件", upload: "上传", drop: "也可把文件拖到这里。", path: "技能中的路径", pathHint: "例如 references/api.md、scripts/run.py 或 assets/logo.png。", add: "添加", rename: "重命名", renameTitle: (path: string) => `重命名 ${path}`, remove: "删除", removeTitle: (path: string) => `删除 ${path}？`, removeText: "会从草稿中移除。已保存的版本不受影响。", actionsOf: (path: string) => `${path} 的操作`,
    faults: { empty: "请填写路径。", shape: "路径由单个斜杠分隔的名称组成，不含 . 和 ..", taken: "已有同名文件。", through: "文件和文件夹不能同名。" } as Record<string, string>,
    uploaded: (n: number) => `已添加 ${n} 个文件`, tooMany: (files: number, bytes: string) => `一个技能最多有 ${count(files)} 个文件，共 ${bytes}。`, replace: (n: number) => `已替换 ${n} 个文件`, picture: (path: string) => `图片 ${path}`, binary: "此文件不是文本，保持原样；要替换请重新上传。", broken: "无法显示此图片。",

    saveTitle: "保存技能", saveVersionTitle: (name: string) => `保存 ${name} 的新版本`, where: "保存位置", own: "我的技能", everybody: "所有人", inGroup: (name: string) => `组 ${name}`, saveNew: "保存技能", saveVersion: "保存版本",
    becomes: (n: number) => `它将成为第 ${n} 个版本，并设为当前版本。`, versionField: "此版本的名称", sameVersion: (v: string) => `当前版本也叫 ${v}。`, noVersion: "版本会自动编号，名称可选。", suggest: "建议",
    whatChanges: "改动", nothingChanges: "与当前版本没有差异。", howNames: { added: "新增", removed: "删除", changed: "修改" } as Record<string, string>, notText: "不是文本，不逐行比较。", fromNow: (n: number) => `与当前版本 ${n} 比较`,
    reviewAfter: "代码须经审核批准后运行；指令可立即使用。", mayNotHere: "您不能把技能保存在那里。", savedNew: (name: string) => `${name} 已保存`, savedVersion: (name: string, n: number) => `${name} 的版本 ${n} 已保存`, cannotSave: "暂时不能保存",

    tryTitle: "在对话中试用", tryText: "会开始一个对话，其中可用当前草稿，取代已保存的同名技能。对话在聊天页打开，您的草稿仍在这里。", say: "第一句话", sayHint: "留空则不发送消息。", tryBegin: "开始", trySession: (name: string) => `试用 ${name}`, trySay: (name: string) => `使用技能 ${name}。`,
    willWork: "可用：指令，以及阅读其中的文件。", wontWork: "审核前不能运行：", wontNone: "全部内容都可试用。", wontRunFiles: "其中的程序", wontTools: "它带来的工具", wontServers: "它带来的 MCP 服务器",
    language: "zh",
  },
);

/** A list of words in a sentence. */
export const listed = (items: string[]): string => (w().language === "zh" ? items.map((i) => `“${i}”`).join("、") : items.map((i) => `“${i}”`).join(", "));
