package operator

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// systemDir returns the directory for machine-wide configuration. It does not
// use the environment variable ProgramData.
func systemDir() string {
	dir, err := windows.KnownFolderPath(windows.FOLDERID_ProgramData, windows.KF_FLAG_DEFAULT)
	if err != nil {
		return ""
	}
	return dir
}

// checkedFrom returns the topmost directory to check before the configuration
// file is trusted. The directories above it are not checked: users can create
// directories there, but cannot rename those of other users.
func checkedFrom() string { return filepath.Join(systemDir(), "loadout") }

// topCheckedDir returns the topmost directory to check before a directory
// of a search path is trusted. The directories above it are not checked: users
// can create directories at the top of a volume, but cannot rename those of
// other users.
func topCheckedDir(dir string) string { return dir }

// writeRights lists the rights to change a file or a directory, including its
// permissions.
const writeRights = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER |
	windows.GENERIC_WRITE | windows.GENERIC_ALL | 0x40 // FILE_DELETE_CHILD

// unsafeReason returns the reason why a user other than an administrator could
// have written the file, or "" if none could.
func unsafeReason(path string, _ fs.FileInfo) string {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "cannot read its permissions: " + err.Error()
	}
	owner, _, err := sd.Owner()
	if err != nil || !isAdministrator(owner) {
		return "not owned by the administrators"
	}
	acl, _, err := sd.DACL()
	if err != nil || acl == nil {
		return "writable by everybody"
	}
	for i := range uint32(acl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(acl, i, &ace); err != nil {
			return "cannot read its permissions: " + err.Error()
		}
		if ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE {
			continue
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE {
			return fmt.Sprintf("unknown kind of permission (%d)", ace.Header.AceType)
		}
		who := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
		if ace.Mask&writeRights != 0 && !isAdministrator(who) {
			return "writable by " + who.String()
		}
	}
	return ""
}

// isAdministrator reports whether sid is the group of administrators, the
// system, or the system's installer.
func isAdministrator(sid *windows.SID) bool {
	return sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) || sid.IsWellKnown(windows.WinLocalSystemSid) ||
		sid.String() == "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
}

func repair(path string) string {
	return "icacls " + path + " /setowner Administrators /inheritance:r /grant:r Administrators:F SYSTEM:F Users:RX"
}
