import { plural, words } from "../words";

export const wf = words(
  {
    required: "Fill this in.", notText: "This is to be text.", notNumber: "This is to be a number.", notInteger: "This is to be a whole number.", notBoolean: "This is to be yes or no.",
    notChoice: "Choose one of the list.", notList: "This is to be a list.", notType: (types: string) => `This is to be of the type ${types}.`, notJson: (why: string) => `This is not JSON: ${why}`,
    short: (n: number, is: number) => `At least ${plural(n, "character")}; there ${is === 1 ? "is" : "are"} ${is}.`, long: (n: number, is: number) => `At most ${plural(n, "character")}; there are ${is}.`, pattern: (p: string) => `This does not fit the pattern ${p}`,
    formats: { email: "This is not an e-mail address, as ada@example.org.", uri: "This is not an address, as https://example.org.", date: "This is not a date, as 2026-01-31.", "date-time": "This is not a date with a time.", time: "This is not a time, as 14:30." },
    least: (n: number) => `At least ${n}.`, most: (n: number) => `At most ${n}.`, above: (n: number) => `More than ${n}.`, below: (n: number) => `Less than ${n}.`, multiple: (n: number) => `A multiple of ${n}.`,
    few: (n: number) => `At least ${plural(n, "entry", "entries")}.`, many: (n: number) => `At most ${plural(n, "entry", "entries")}.`, twice: "An entry is there twice.", item: (n: number, why: string) => `Entry ${n}: ${why}`,
    optional: "optional", choose: "Choose", none: "None", yes: "Yes", no: "No", add: "Add an entry", remove: (n: number) => `Remove entry ${n}`, entry: (name: string, n: number) => `${name}, entry ${n}`,
    asJson: "Edit as JSON", asForm: "Edit in fields", json: "The whole as JSON", jsonValue: "A value in JSON", empty: "Nothing is asked for here.", range: (a: number, b: number) => `From ${a} to ${b}`, from: (n: number) => `At least ${n}`, upTo: (n: number) => `At most ${n}`, chars: (n: number) => `At most ${plural(n, "character")}`, local: "In the time zone of this browser",
  },
  {
    required: "请填写此项。", notText: "此项应为文本。", notNumber: "此项应为数字。", notInteger: "此项应为整数。", notBoolean: "此项应为是或否。",
    notChoice: "请从列表中选择。", notList: "此项应为列表。", notType: (types: string) => `此项的类型应为 ${types}。`, notJson: (why: string) => `不是有效的 JSON：${why}`,
    short: (n: number, is: number) => `至少 ${n} 个字符，现有 ${is} 个。`, long: (n: number, is: number) => `最多 ${n} 个字符，现有 ${is} 个。`, pattern: (p: string) => `不符合格式 ${p}`,
    formats: { email: "不是有效的邮箱地址，例如 ada@example.org。", uri: "不是有效的网址，例如 https://example.org。", date: "不是有效的日期，例如 2026-01-31。", "date-time": "不是有效的日期和时间。", time: "不是有效的时间，例如 14:30。" },
    least: (n: number) => `不能小于 ${n}。`, most: (n: number) => `不能大于 ${n}。`, above: (n: number) => `必须大于 ${n}。`, below: (n: number) => `必须小于 ${n}。`, multiple: (n: number) => `必须是 ${n} 的倍数。`,
    few: (n: number) => `至少 ${n} 项。`, many: (n: number) => `最多 ${n} 项。`, twice: "有重复的项。", item: (n: number, why: string) => `第 ${n} 项：${why}`,
    optional: "选填", choose: "请选择", none: "不选", yes: "是", no: "否", add: "添加一项", remove: (n: number) => `删除第 ${n} 项`, entry: (name: string, n: number) => `${name}，第 ${n} 项`,
    asJson: "以 JSON 编辑", asForm: "以表单编辑", json: "全部内容（JSON）", jsonValue: "JSON 值", empty: "这里没有需要填写的内容。", range: (a: number, b: number) => `${a} 到 ${b}`, from: (n: number) => `不小于 ${n}`, upTo: (n: number) => `不大于 ${n}`, chars: (n: number) => `最多 ${n} 个字符`, local: "按本浏览器的时区",
  },
);
