import { plural, words } from "../../words";

export const w = words(
  {
    title: "Add skills", lead: "A skill is a folder with a SKILL.md. Its text can be used at once; code in it runs after a review.", back: "Library",
    upload: "Upload", from: "Import", kinds: "Ways to add skills", namespace: "For whom", namespaceHint: "Who finds and uses the skills.",
    drop: "Drop ZIP files or skill folders here", or: "or", choose: "Choose ZIP files", folder: "Choose a folder", dropHint: "A ZIP has one folder with a SKILL.md, or its files alone.",
    lenient: "Let the folder have another name than the skill", queue: "Uploads", clear: "Clear the list",
    waits: "Waits", packing: "Packing", sending: (percent: number) => `Sending, ${percent} %`, checking: "The hub checks it", done: "Added", version: (n: number) => `Added as version ${n}`, refused: "Refused",
    exists: "There is a skill of that name here already.", asVersion: "Upload as a new version of it", open: "Open the skill", same: "It has these files already; nothing was changed.",
    skip: "Dismiss", reviewNext: "It has code, which runs after a review.", noFolder: (name: string) => `${name} has no SKILL.md`, tooBig: (name: string, most: string) => `${name} is larger than ${most}`, atMost: (most: string) => `${most} at most each. `,
    source: "Where the skills are", sourceHint: "As owner/repo, owner/repo/folder@branch, https://host/repo.git, https://host/skills.zip, or a site that publishes skills.", ref: "Branch, tag or commit", refHint: "Optional; without it the default branch.",
    look: "Look", looking: "Looking at the place. A large repository takes up to some minutes", found: (n: number) => `${plural(n, "skill")} found`, commit: "State", choices: "Skills to import", all: "Select all", none: "Select none",
    fresh: "New", sameHere: "The same is here", conflict: "Another version is here", overwrite: "Import as a new version of it", cannot: "Cannot be imported", problems: "What is wrong there",
    take: (n: number) => `Import ${plural(n, "skill")}`, taking: "Importing", result: "Result", created: "New", updated: "New versions", skipped: "Skipped", another: "Import from another place", toLibrary: "To the library",
    nothing: "No skill was found at that place", nothingText: "Skills are folders with a SKILL.md. Name the folder that has them, as owner/repo/skills.", mine: "Me alone", step: (n: number, of: number) => `Step ${n} of ${of}`, keptNote: "A skill that stays unticked is left as it is here.",
  },
  {
    title: "添加技能", lead: "技能是一个包含 SKILL.md 的文件夹。其中的文字可立即使用；代码须经审核后才能运行。", back: "技能库",
    upload: "上传", from: "导入", kinds: "添加方式", namespace: "使用者", namespaceHint: "谁可以找到并使用这些技能。",
    drop: "将 ZIP 文件或技能文件夹拖到这里", or: "或", choose: "选择 ZIP 文件", folder: "选择文件夹", dropHint: "ZIP 中应有一个包含 SKILL.md 的文件夹，或直接是其中的文件。",
    lenient: "允许文件夹与技能名称不同", queue: "上传列表", clear: "清空列表",
    waits: "等待中", packing: "正在打包", sending: (percent: number) => `正在发送 ${percent}%`, checking: "正在检查", done: "已添加", version: (n: number) => `已添加为版本 ${n}`, refused: "被拒绝",
    exists: "这里已有同名技能。", asVersion: "作为它的新版本上传", open: "打开技能", same: "它已包含相同的文件，没有任何改动。",
    skip: "移除", reviewNext: "其中有代码，须经审核后才能运行。", noFolder: (name: string) => `${name} 中没有 SKILL.md`, tooBig: (name: string, most: string) => `${name} 超过 ${most}`, atMost: (most: string) => `每个不超过 ${most}。`,
    source: "技能所在位置", sourceHint: "例如 owner/repo、owner/repo/folder@branch、https://host/repo.git、https://host/skills.zip，或发布技能的网站。", ref: "分支、标签或提交", refHint: "可选；不填则用默认分支。",
    look: "查看", looking: "正在查看该位置，较大的仓库可能需要几分钟", found: (n: number) => `找到 ${n} 个技能`, commit: "状态", choices: "要导入的技能", all: "全选", none: "全不选",
    fresh: "新技能", sameHere: "已有相同内容", conflict: "已有其他版本", overwrite: "作为它的新版本导入", cannot: "无法导入", problems: "那里存在的问题",
    take: (n: number) => `导入 ${n} 个技能`, taking: "正在导入", result: "结果", created: "新技能", updated: "新版本", skipped: "已跳过", another: "从其他位置导入", toLibrary: "前往技能库",
    nothing: "在该位置没有找到技能", nothingText: "技能是包含 SKILL.md 的文件夹。请指明所在文件夹，例如 owner/repo/skills。", mine: "仅自己", step: (n: number, of: number) => `第 ${n} 步，共 ${of} 步`, keptNote: "未勾选的技能保持不变。",
  },
);
