import type { Diagnosed, Refused } from "./index";

/**
 * A text, and what is taken over from the English one: $1 is the first group of the pattern.
 * Where the pattern does not fit, the English text stays.
 */
type Text = string | [text: string | ((...groups: (string | undefined)[]) => string), of: RegExp];

const put = (text: Text | undefined, english: string): string => {
  if (text === undefined) return english;
  if (typeof text === "string") return text;
  const found = text[1].exec(english);
  if (!found) return english;
  const says = text[0];
  return typeof says === "function" ? says(...found.slice(1)) : says.replace(/\$(\d)/g, (_, n: string) => found[Number(n)] ?? "");
};

const rename: Text = ["改名为 $1", /^name it (.+)$/];
const notBySpec = (what: string): string => `前置元数据的 YAML 中有${what}，参考校验器不允许这样写`;
const path = (says: string): Text => [`$1 ${says}`, /^(.+?) (?:is|cannot)\b/];

const nameLine: Text = [(name) => `添加 name:${name ?? ""} 一行`, /^add (?:the line name:( \S+)|a line name: with .+)$/];
const byFolder = (says: string): Text => [(folder) => says + (folder ? `；以文件夹名 ${folder} 加载` : ""), /^.+?(?:; it is loaded under its folder's name (".*"))?$/];

/** What is wrong with a SKILL.md, and how it is mended, by the code. */
export const diagnostics: Record<string, [message: Text, fix: Text]> = {
  "file-name": [["文件名为 $1，应为 SKILL.md", /named (.+), not/], "改名为 SKILL.md"],
  "file-empty": ["文件是空的；SKILL.md 必须以 YAML 前置元数据（---）开头", "以 ---、name: … 一行、description: … 一行和 --- 开头"],
  "file-too-long": [["SKILL.md 超过 $1 字节", /more than (\d+) bytes/], "将内容移到参考文件中"],
  "file-special": [path("不是普通文件，已忽略"), "将其移除"],
  "file-link": [path("是链接，没有指向技能中的文件，已忽略"), "将文件本身放入技能"],
  "file-unreadable": [["$1 无法读取，已忽略：$2", /^(.+) cannot be read and is ignored: (.+)$/], "修复或移除它"],
  "encoding-utf-16": ["文件的编码是 UTF-16，不是 UTF-8", "将文件存为不带字节顺序标记的 UTF-8"],
  "encoding-not-utf-8": ["前置元数据中有一个字节不是 UTF-8", "将文件存为 UTF-8"],
  "byte-order-mark": ["文件以字节顺序标记开头；SKILL.md 必须以 YAML 前置元数据（---）开头", "将文件存为不带字节顺序标记的 UTF-8"],
  "leading-blank-lines": ["文件以空行开头；SKILL.md 必须以 YAML 前置元数据（---）开头", "删除第一个 --- 之前的空行"],
  "frontmatter-missing": ["SKILL.md 必须以 YAML 前置元数据（---）开头", "以 ---、name: … 一行、description: … 一行和 --- 开头"],
  "frontmatter-code-block": ["字段在代码块中；SKILL.md 必须以 YAML 前置元数据（---）开头", "删除前置元数据前后的 ``` 行"],
  "frontmatter-unfenced": ["字段之前没有 --- 行；SKILL.md 必须以 YAML 前置元数据（---）开头", "在第一个字段之前和最后一个字段之后各加一行 ---"],
  "frontmatter-fence": ["第一行除了 --- 还有其他内容", "让 --- 单独成行"],
  "frontmatter-unclosed": ["SKILL.md 的前置元数据没有以 --- 结束", "在最后一个字段之后加一行 ---"],
  "frontmatter-too-long": [["前置元数据超过 $1 字节", /more than (\d+) bytes/], "将长文字移到第二个 --- 之后"],
  "frontmatter-not-a-mapping": ["SKILL.md 的前置元数据必须是 YAML 映射", "写成“字段: 值”的多行"],
  "yaml-invalid": [["前置元数据的 YAML 无效：$1", /frontmatter: (.+)$/], "将值放入双引号，各字段对齐，缩进用空格；长文字写在以 | 结尾的行之下"],
  "yaml-repaired": [["前置元数据的 YAML 无效：$1；已按 $2 的值带引号读取", /frontmatter: (.+); read as if the value of (.+) were quoted$/], ["将 $1 的值放入引号", /value of (.+) in quotes/]],
  "yaml-too-large": [["前置元数据的 YAML 无效：$1", /frontmatter: (.+)$/], "直接写出各个值，减少嵌套"],
  "yaml-alias": [notBySpec("别名（*name）"), "直接写出值"],
  "yaml-anchor": [notBySpec("锚点（&name）"), "将值放入引号，或去掉 &"],
  "yaml-tag": [notBySpec("标记（!name）"), "将值放入引号，或去掉 !"],
  "yaml-flow": [notBySpec("写在方括号或花括号中的集合"), "写成缩进的多行"],
  "yaml-line-separator": [notBySpec("位于多行文字里的 Unicode 行分隔符"), "将其删除"],
  "yaml-key": [notBySpec("不是文字的键"), "将键写成一段文字"],
  "yaml-merge": [notBySpec("合并键（<<）"), "直接写出各个字段"],
  "yaml-long-key": [notBySpec("超过 1024 个字符的键"), "将其缩短"],
  "yaml-indentation": [notBySpec("缩进不一致的并列映射"), "使用相同的缩进"],
  "yaml-tab": [notBySpec("引号之外的制表符"), "用空格代替制表符"],
  "yaml-document-end": [notBySpec("位于第一个字段之前的一行点号"), "删除该行"],
  "duplicate-key": [["字段 $1 出现两次，以后一个为准", /field (".*") is given twice/], "删除其中一个"],
  "nul-byte": ["前置元数据中有 NUL 字节", "删除该字节"],
  "control-character": [["前置元数据中有控制字符 $1", /(U\+[0-9A-F]+)/], "删除该字符"],
  "line-endings-crlf": ["各行以 CR LF 结尾", "改以 LF 结尾，这样在其他系统上检出时摘要不变"],
  "line-endings-mixed": ["有的行以 CR LF 结尾，有的以 LF 结尾", "所有行都以 LF 结尾"],
  "metadata-not-a-map": ["metadata 不是映射，已忽略", "写成缩进的“键: 值”多行"],
  "metadata-values": [["metadata 中有值不是字符串：$1", /not strings: (.+)$/], "将值放入引号；规范只允许字符串"],
  "unexpected-fields": [["前置元数据中有规范之外的字段：$1。规范只允许 $2", /frontmatter: (.+)\. Only \[(.+)\] are allowed/], "移到 metadata: 之下，其他程序会忽略它们"],
  "name-missing": [byFolder("前置元数据缺少必需的字段 name"), nameLine],
  "name-empty": [byFolder("字段 name 必须是非空的文字"), nameLine],
  "name-unusable": [["名称 $1 太长，或含有路径分隔符或不可显示的字符", /^the name (".*?") is/], nameLine],
  "name-folder": [["文件夹名 '$1' 必须与技能名 '$2' 一致", /^Directory name '(.*)' must match skill name '(.*)'$/], ["将文件夹改名为 $1，或将技能改名为 $2", /folder to (.+), or the skill to (.+)$/]],
  "name-too-long": [["技能名 '$1' 超过 64 个字符（共 $2 个）", /^Skill name '(.*)' exceeds .*\((\d+) chars\)/], "缩短到 64 个字符以内"],
  "name-case": [["技能名 '$1' 必须是小写", /^Skill name '(.*)' must/], rename],
  "name-hyphen-edge": ["技能名不能以连字符开头或结尾", rename],
  "name-hyphen-double": ["技能名不能有连续的连字符", rename],
  "name-characters": [["技能名 '$1' 含有无效字符，只允许字母、数字和连字符", /^Skill name '(.*)' contains/], rename],
  "name-not-portable": [["名称 $1 含有 a-z、0-9 和 - 之外的字符，许多程序不接受", /^the name (".*") holds/], rename],
  "name-reserved": [["名称 $1 含有某些平台保留的词", /^the name (".*") holds/], "换一个不含 claude 或 anthropic 的名称"],
  "description-missing": ["前置元数据缺少必需的字段 description", "添加 description: 一行，说明技能做什么、何时使用"],
  "description-empty": ["字段 description 必须是非空的文字", "添加 description: 一行，说明技能做什么、何时使用"],
  "description-list": ["字段 description 必须是一段文字；列表中的各项已连在一起", "写成一段文字"],
  "description-untyped": [["字段 description 必须是一段文字，而 $1 在 YAML 中另有含义", /meaning for (.+)$/], "放入引号"],
  "description-too-long": [["描述超过 1024 个字符（共 $1 个）", /\((\d+) chars\)/], "只保留说明何时使用技能的部分，其余移到说明中"],
  "description-angle-brackets": ["描述中有 <…>，有的程序不接受，或当作标记读取", "不用尖括号"],
  "description-placeholder": ["描述只是占位文字", "说明技能做什么、何时使用"],
  "hidden-characters": [["描述中有看不见的字符 $1", /(U\+[0-9A-F]+)/], "将其删除，并查明它从何而来"],
  "compatibility-type": ["字段 compatibility 必须是文字", "写成一段文字"],
  "compatibility-too-long": [["compatibility 超过 500 个字符（共 $1 个）", /\((\d+) chars\)/], "缩短到 500 个字符以内"],
  "tools-field": ["字段 tools 按 allowed-tools 读取", "改名为 allowed-tools"],
  "allowed-tools-commas": ["allowed-tools 以逗号分隔", "按规范以空格分隔各个工具"],
  "allowed-tools-list": ["allowed-tools 是列表", "写成一段文字，以空格分隔"],
  "tool-without-name": ["tools 中有一个工具没有名称，已忽略", "为它添加 name:"],
  "provider-not-a-map": ["provider 不是映射，已忽略", "写明 module 和 class、command 或 wasm"],
  "provider-incomplete": ["provider 必须在 class、command 和 wasm 中恰好有一个", "只保留所指的那个"],
  "mcp-servers": [["mcpServers 有误，已忽略：$1", /^(?:mcpServers is ignored: )?(.+)$/], "写成以名称为键的服务器配置"],
  "not-a-boolean": [["$1 既不是 true 也不是 false，按 $2 处理", /^(\S+) is neither.*taken as (\S+)$/], "写 true 或 false"],
  "not-a-map": [["$1 不是以文字为键的映射，已忽略", /^(\S+) is not/], "写成缩进的“键: 值”多行"],
  "body-empty": ["前置元数据之后没有说明", "写明加载技能后要做什么"],
  "body-nul-byte": ["说明中有 NUL 字节", "将其删除"],
  "body-not-utf-8": ["说明中有一个字节不是 UTF-8", "将文件存为 UTF-8"],
  "body-tokens": [["说明约有 $1 个词元，超过 5000", /about (\d+) tokens/], "将不总是需要的内容移到 references/ 下的文件中"],
  "body-lines": [["说明有 $1 行，超过 500", /have (\d+) lines/], "将不总是需要的内容移到 references/ 下的文件中"],
  "catalog-line-tokens": [["名称和描述约有 $1 个词元，超过 100；每个智能体在每次对话中都要为此付出", /about (\d+) tokens/], "缩短描述，只说明何时使用技能"],
};

/** What a validator says that reads another part of the file. */
const elsewhere = "; the reference validator reads only what is between the first two ---, wherever they are";

export function diagnostic<T extends Diagnosed>(d: T): T {
  const known = diagnostics[d.code];
  if (!known) return d;
  if (d.message.endsWith(elsewhere))
    return { ...d, message: put(known[0], d.message.slice(0, -elsewhere.length)) + "；参考校验器只读取前两个 --- 之间的内容，无论它们在哪里", fix: "除前置元数据前后的行之外，不要写 ---" };
  return { ...d, message: put(known[0], d.message), ...(d.fix && { fix: put(known[1], d.fix) }) };
}

/** Why the hub refuses, and what to do, by the code; where one code has several reasons, the first whose pattern fits. */
const problems: Record<string, [detail: Text, next?: Text][]> = {
  not_found: [[["没有这项内容，或者您无权查看", /^there is no such thing/], "检查它是否还在列表中"]],
  sign_in: [["尚未登录", "先登录"]],
  bad_token: [["令牌无效", "创建另一个令牌"]],
  wrong_password: [["用户名或密码错误", "重试，或请管理员重设密码"]],
  disabled: [["此账户已停用", "联系管理员"]],
  no_account: [["您在这里没有账户", "请管理员允许您的群组加入"]],
  bad_link: [["此链接无效或已用过", "重新启动服务：在还没有管理员时，它会给出新的链接"]],
  has_admin: [["已经有管理员了", "登录"]],
  last_admin: [["这是最后一位管理员", "先让其他人成为管理员"]],
  last_owner: [["这是最后一位所有者", "先让其他人成为所有者"]],
  cross_origin: [["请求来自其他网站的页面", "从这里的页面发送"]],
  provider_denied: [[["登录提供方拒绝了登录：$1", /^(.+)$/], "重新登录"]],
  provider: [[["登录提供方出错：$1", /^(.+)$/], "重新登录；如果仍然不行，请告知管理员"]],
  busy: [["现在太忙了", "过几秒再试"]],
  scope: [[["令牌缺少权限：$1", /lacks the scope (.+)$/], ["使用具有 $1 权限的令牌", /with the scope (.+)$/]]],
  forbidden: [[["您无权执行此操作（$1）", /^([\w.]+): you have no right to/], "联系管理它的人"]],
  too_often: [[["操作太频繁，请在 $1 后再试", /try again in (\S+)$/], ["等待 $1 秒", /wait for (\d+) s/]]],
  exists: [
    [["已有同名的技能", /^there is a skill of that name already$/], "可以作为它的新版本上传，或为技能换一个名称"],
    [["此技能已有包含这些文件的版本", /^a version of the skill has these files already$/], "可以在版本中将那个版本设为当前版本"],
    [["已有同名的项目", /^there is one of that name already$/], "换一个名称"],
  ],
  changed: [
    [["文件与您看到的不同", /^the files are not those that you saw$/], "重新查看，再作决定"],
    [["其间有人更改了它", /^somebody changed it in the meantime$/], "重新读取后再更改"],
  ],
  another_name: [["该编号的技能是另一个名称", "写它的名称"]],
  in_use: [[["仍在使用：$1", /^(.+)$/], "先移除使用它的内容"]],
  SKILL_REFERENCED: [[["技能 $1 仍在使用", /^skill (".*?") is in use/], "先移除引用它的内容"]],
  too_many: [[["太多了：$1", /^(.+)$/], "移除一些不需要的"]],
  too_large: [
    [["技能包超过 $1 字节", /package has more than (\d+) bytes/], "去掉技能不需要的内容"],
    [["请求的内容太大", /^the request has more bytes/], "减少发送的内容"],
  ],
  held: [["另一个节点正在处理", "稍后再试"]],
  waiting: [["此对话中等待的内容太多", "等待当前轮次结束，或将其取消"]],
  too_many_open: [["打开的连接太多", "关闭不需要的，或过几秒再试"]],
  slow: [["花费的时间太长", "重试，或减少要求的内容"]],
  ended: [["请求在完成之前已结束", "重新发送"]],
  unavailable: [["无法连接数据库", "稍后再试"]],
  disk_full: [["磁盘已满", "请管理员腾出空间"]],
  closing: [["节点即将停止", "重试，其他节点会处理"]],
  internal: [["服务出错", "将请求编号告诉运维人员"]],
  no_public: [["平台不知道浏览器访问它的地址，而服务器要将浏览器送回该地址", "请运维人员设置平台的公开地址"]],
  signin_unwanted: [["无需登录此服务器", "直接使用它"]],
  signin_unknown: [["在此浏览器中没有等待完成的登录：它已结束、已被使用，或是在别处开始的", "在此浏览器中以您的身份重新开始"]],
  signin_denied: [[["登录被拒绝：$1", /^the sign-in was refused: (.+)$/], "重新开始，并在对方页面上同意"]],
  signin_issuer: [["服务器指明的授权服务器与之前的不同，或应答来自别处；没有向其发送任何内容", "询问服务器的运营者是否已迁移；如果是，请退出登录后重新登录"]],
  signin_address: [[["$1 不是公开地址，没有向其发送任何内容", /^(?:.*: )?(\S+) is at no public address/], "如果允许访问，请运维人员将其列入 sandbox.private"]],
  signin_failed: [[["无法登录：$1", /^(.+)$/], "重试；如果仍然如此，请询问服务器的运营者：在对方手动注册的客户端写入配置，形如 oauth: {clientId: …}"]],
  not_granted: [["它所要求的权限尚未授予", "授予权限"]],
  settled: [["这个问题已经有了回答", "没有需要回答的了"]],
  waits: [["它在排队，轮到时就会执行", "查看对话，或取消当前轮次"]],
  no_request: [["没有等待回答的问题", "它已有回答，或时间太久"]],
  not_reviewed: [
    [["技能 $1 的代码在审核中被拒绝：$2", /code of skill (".*?") was rejected in review: (.+)$/], "请有权审核的人查看其代码"],
    [["技能 $1 的代码尚未获批准", /code of skill (".*?")/], "请有权审核的人查看其代码"],
  ],
  disabled_skills: [["技能已关闭", "联系管理员，或您群组的维护者"]],
  bad_package: [["技能包有问题", "修正以上各项后重新打包"]],
  bad_skill: [["这个技能无法加载", "修正以上各项"]],
  bad_name: [[["技能在这里不能命名为 $1", /cannot be named (".*?") here/], "在 SKILL.md 中为技能换一个名称"]],
  refused: [["文档未被接受", "修正以上各项后重新保存"]],
  invalid: [
    [["请求的内容有误", /^the request cannot be taken as it is$/], "修正以上各项"],
    [["值无法保存：太长，或不是文字", /^a value cannot be kept/], "缩短，并以文字发送"],
  ],
  malformed: [["请求无法读取", "修正后重新发送"]],
  by_rule: [["智能体的规则不允许", "联系管理这些规则的人"]],
  source_invalid: [[[(what, all) => (what ? `${what} 不是可以获取技能的位置` : `这不是可以获取技能的位置：${all ?? ""}`), /^(?:(".*?") is no place|(.+)$)/], "写 owner/repo、https://host/repository、https://host/archive.zip，或发布技能的网站 https://host"]],
  source_not_found: [[["在该位置没有找到：$1", /^(.+)$/], ["检查拼写，以及它是否还在$1", /still there(.*)$/]]],
  source_denied: [[["该位置拒绝访问：$1", /^(.+)$/]]],
  source_address: [[["不允许访问该地址：$1", /^(.+)$/], "使用公共互联网上可通过 https 访问的位置，或请运维人员放行"]],
  source_too_large: [[["该位置的内容太大：$1", /^(.+)$/], "从较小的仓库或压缩包导入，或直接上传技能"]],
  source_digest: [[["文件与索引所指的不一致：$1", /^(.+)$/], "告知发布者"]],
  source_failed: [[["无法从该位置获取：$1", /^(.+)$/], "稍后再试；如果仍然不行，请检查地址"]],
  no_git: [["运行环境中没有 git", "请运维人员安装 git，或从压缩包导入"]],
  no_key: [[["没有用于加密的密钥：$1", /^(.+)$/], "请运维人员提供密钥"]],
  server: [[["MCP 服务器没有正常应答：$1", /^(.+)$/], "在 MCP 服务器恢复后再试"]],
  single: [["这里只供一人使用，无需登录", "如需账户，请以 loadout serve --accounts 启动"]],
};

const fits = (text: Text, english: string) => typeof text === "string" || text[1].test(english);

export function problem<T extends Refused>(p: T): T {
  const known = problems[p.code]?.find(([detail]) => fits(detail, p.detail));
  if (!known) return p;
  return { ...p, detail: put(known[0], p.detail), ...(p.next && { next: put(known[1], p.next) }) };
}
