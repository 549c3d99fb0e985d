/** The components of all pages. */
export { ActionButton, Button, Copy } from "./button";
export { Confirm, Dialog, useConfirm } from "./dialog";
export { AreaField, Check, Field, SelectField, TextField } from "./field";
export { Icon, Logo, type IconName } from "./icon";
export { Menu, MenuItem } from "./menu";
export { useModal } from "./modal";
export { Empty, More, Problem, Reasons, Shown, Tag, Waiting, When } from "./status";
export { TableWrap } from "./table";
export { Tabs } from "./tabs";
export { done, failed } from "./notify";
export { Toasts } from "./toast";
