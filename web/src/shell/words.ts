import { words } from "../words";

export const w = words(
  {
    skip: "Skip to the content", nav: "Pages", openNav: "Show the pages", closeNav: "Hide the pages",
    chat: "Chat", library: "Library", review: "Review", compose: "Composer", agents: "Agents", servers: "Servers", asks: "Questions", usage: "Usage", audit: "Audit", settings: "Settings", admin: "Administration",
    work: "Work", team: "Team", waiting: (n: number) => `${n} waiting`,
    theme: "Theme", system: "As the system", light: "Light", dark: "Dark", language: "Language", account: "Account", signOut: "Sign out",
    away: "The hub cannot be reached. What you see is what was known last; it is tried again.",
    starting: "Asking the hub who you are", nowhere: "There is no such page", nowhereText: "The address may be old, or mistyped.", home: "To the chat",
    broken: "This part of the page failed", brokenText: "Reload the page. If it fails again, tell the operator what is below.", reload: "Reload the page", getting: "Getting this part of the page",
  },
  {
    skip: "跳到正文", nav: "页面", openNav: "显示页面列表", closeNav: "隐藏页面列表",
    chat: "对话", library: "技能库", review: "审核", compose: "编写", agents: "智能体", servers: "服务器", asks: "待答问题", usage: "用量", audit: "审计", settings: "设置", admin: "管理",
    work: "工作", team: "团队", waiting: (n: number) => `${n} 个待处理`,
    theme: "主题", system: "跟随系统", light: "浅色", dark: "深色", language: "语言", account: "账户", signOut: "退出登录",
    away: "无法连接到服务器。您看到的是最近一次的内容，正在重试。",
    starting: "正在确认您的身份", nowhere: "没有这个页面", nowhereText: "地址可能已过期或输入有误。", home: "前往对话",
    broken: "页面的这一部分出错了", brokenText: "请重新加载页面。如果仍然出错，请把下面的内容告诉管理员。", reload: "重新加载", getting: "正在加载页面",
  },
);
