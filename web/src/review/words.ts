import { plural, words } from "../words";

export const w = words(
  {
    title: "Review", lead: "Code of a skill runs once somebody approved it, byte for byte. What waits for you is here, the oldest first.", waiting: "Getting what waits for a review",
    notYou: "You review nothing here", notYouText: "Maintainers of a group review what is uploaded to it, administrators everything.",
    none: "Nothing waits for a review", noneText: "When somebody uploads a version with code to a place where you review, it is here with its files, what changed and what a scan found.", library: "To the library",
    noCode: "No code waits for you.", withoutCode: (n: number) => `${plural(n, "version")} without code, used as ${n === 1 ? "it is" : "they are"}`,
    skill: "Skill", version: "Version", by: "Uploaded", findings: "Findings", scripts: "Scripts", open: "Look at it", where: "Where",
    nobody: "Nothing found", levels: { high: "high", medium: "medium", low: "low", info: "info" } as Record<string, string>, unscanned: "Not scanned",
    of: (name: string, number: number) => `Review ${name}, version ${number}`, since: (number: number) => `What changed since version ${number}`, sinceApproved: (number: number) => `What changed since version ${number}, which was approved`, fresh: "The first version: all of it is new",
    against: "Compare with", nothing: "nothing: show all files", number: (n: number) => `version ${n}`, approvedMark: "approved", digest: "Digest", decide: "Decision", files: "Files", changes: "Changes", scan: "Scan", asks: "What it asks for", more: "It asks for more", less: "It asks for less",
    approve: "Approve its code", reject: "Reject", note: "Words with it", noteHint: "For those who uploaded and use it. With a rejection, say what has to change.", noteNeeded: "Say what has to change", approved: "Its code is approved", rejected: "It is rejected", takeBack: "Take the decision back", taken: "The decision is taken back",
    means: (n: number) => `You approve that ${plural(n, "file")} with exactly this digest may run in the sandbox of everybody who uses the skill. Another version is another decision.`,
    changed: "changed", added: "new", removed: "gone", renamed: "renamed", mode: "mode changed", omitted: "Not shown: ", instructions: "SKILL.md", fields: "What it says of itself", script: "script", beside: "Side by side", lines: (a: number, r: number) => `+${a} −${r}`,
    state: { pending: "Waits", approved: "Approved", rejected: "Rejected" } as Record<string, string>, earlier: "Decided by", all: "Everything that waits", fileList: "Files of the version", none2: "No findings. A scan knows patterns, not intentions: read the code.", seen: "Seen", adviceNote: "A scan is advice; the sandbox is the boundary.", cannot: "You may look at it, but somebody else has to decide: a maintainer of its group who did not upload it, or an administrator.", getFile: "Getting the file", partial: "The scan stopped at its limit; there may be more.", picture: "A picture", binary: "No text; download it to look at it.",
  },
  {
    title: "审核", lead: "技能中的代码只有在逐字节审核通过后才能运行。等待您审核的版本按时间先后列在这里。", waiting: "正在获取待审核的版本",
    notYou: "您没有需要审核的内容", notYouText: "群组的维护者审核上传到群组的内容，管理员审核全部内容。",
    none: "没有待审核的版本", noneText: "当有人向您负责审核的地方上传含有代码的版本时，它会连同文件、变更和扫描结果出现在这里。", library: "前往技能库",
    noCode: "没有等待审核的代码。", withoutCode: (n: number) => `${n} 个没有代码的版本，可直接使用`,
    skill: "技能", version: "版本", by: "上传于", findings: "扫描结果", scripts: "脚本", open: "查看", where: "位置",
    nobody: "未发现问题", levels: { high: "高", medium: "中", low: "低", info: "提示" } as Record<string, string>, unscanned: "未扫描",
    of: (name: string, number: number) => `审核 ${name} 版本 ${number}`, since: (number: number) => `自版本 ${number} 以来的变更`, sinceApproved: (number: number) => `自已通过的版本 ${number} 以来的变更`, fresh: "这是第一个版本，全部内容都是新的",
    against: "对比", nothing: "不对比：显示全部文件", number: (n: number) => `版本 ${n}`, approvedMark: "已通过", digest: "摘要", decide: "审核决定", files: "文件", changes: "变更", scan: "扫描", asks: "它的要求", more: "新增的要求", less: "减少的要求",
    approve: "通过其代码", reject: "拒绝", note: "附言", noteHint: "写给上传者和使用者。拒绝时请说明需要修改什么。", noteNeeded: "请说明需要修改什么", approved: "其代码已通过审核", rejected: "已拒绝", takeBack: "撤回决定", taken: "已撤回决定",
    means: (n: number) => `通过后，摘要完全一致的这 ${n} 个文件可以在所有使用者的沙箱中运行。其他版本需要另行审核。`,
    changed: "已修改", added: "新增", removed: "已删除", renamed: "已改名", mode: "权限已改", omitted: "未显示：", instructions: "SKILL.md", fields: "自述信息", script: "脚本", beside: "并排显示", lines: (a: number, r: number) => `+${a} −${r}`,
    state: { pending: "待审核", approved: "已通过", rejected: "已拒绝" } as Record<string, string>, earlier: "审核人", all: "全部待审核", fileList: "该版本的文件", none2: "没有发现问题。扫描只认识模式，不了解意图，请阅读代码。", seen: "已看", adviceNote: "扫描仅供参考，沙箱才是边界。", cannot: "您可以查看，但须由他人决定：所属群组中并非上传者的维护者，或管理员。", getFile: "正在获取文件", partial: "扫描已达上限，可能还有更多问题。", picture: "图片", binary: "不是文本，请下载后查看。",
  },
);
