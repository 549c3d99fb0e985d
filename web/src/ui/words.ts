import { words } from "../words";

export const w = words(
  {
    loading: "Getting it", close: "Close", cancel: "Cancel", copy: "Copy", copied: "Copied", again: "Try again", more: "Show more", dismiss: "Dismiss",
    moreActions: "More actions", next: "What you can do: ", failed: "That did not work", request: "Id of the request: ", refused: "Not allowed", missing: "Not found",
  },
  {
    loading: "正在获取", close: "关闭", cancel: "取消", copy: "复制", copied: "已复制", again: "重试", more: "显示更多", dismiss: "关闭提示",
    moreActions: "更多操作", next: "您可以：", failed: "操作未成功", request: "请求编号：", refused: "没有权限", missing: "未找到",
  },
);
