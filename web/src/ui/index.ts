/** The parts that all pages are made of. */
export { ActionButton, Button, Copy } from "./button";
export { Dialog, useConfirm } from "./dialog";
export { AreaField, Check, Field, SelectField, TextField } from "./field";
export { Icon, type IconName } from "./icon";
export { Menu, MenuItem } from "./menu";
export { useModal } from "./modal";
export { Empty, More, Problem, Shown, Tag, Waiting, When } from "./say";
export { TableWrap } from "./table";
export { Tabs } from "./tabs";
export { done, failed, Toasts } from "./toast";
