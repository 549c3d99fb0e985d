package manpage

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	root := &cobra.Command{Use: "ship", Short: "Pack things"}
	root.PersistentFlags().Bool("json", false, "print JSON")
	root.AddGroup(&cobra.Group{ID: "use", Title: "Pack and send:"})
	box := &cobra.Command{Use: "box [DIR]", Short: `Pack a box`, GroupID: "use", Aliases: []string{"pack"}, Run: func(*cobra.Command, []string) {},
		Long:    "Pack the files in DIR.\n.Hidden files stay in C:\\tmp, it's said.\n\n  first   ~/a\n  second  `b`",
		Example: "  ship box --to paris ."}
	box.Flags().StringP("to", "t", "", "send it to `CITY`")
	box.Flags().Bool("secret", false, "not for users")
	if err := box.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	root.AddCommand(box)

	if got, want := write(t, root), `.TH "SHIP" 1 "2026\-03\-01" "ship v1.2.0" "User Commands"
.SH "NAME"
ship \- Pack things
.SH "SYNOPSIS"
\fBship\fR [command] [flags]
.SH "DESCRIPTION"
Pack things.
.SH "COMMANDS"
.SS "Pack and send"
.TP
\fBship\-box\fR(1)
Pack a box
.SH "OPTIONS"
.TP
\fB\-h\fR, \fB\-\-help\fR
help for ship
.TP
\fB\-\-json\fR
print JSON
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := write(t, box), `.TH "SHIP\-BOX" 1 "2026\-03\-01" "ship v1.2.0" "User Commands"
.SH "NAME"
ship\-box \- Pack a box
.SH "SYNOPSIS"
\fBship box\fR [DIR] [flags]
.SH "DESCRIPTION"
Pack the files in DIR.
\&.Hidden files stay in C:\etmp, it\(aqs said.
.PP
.nf
  first   \(ti/a
  second  \(gab\(ga
.fi
.SH "ALIASES"
pack
.SH "OPTIONS"
.TP
\fB\-h\fR, \fB\-\-help\fR
help for box
.TP
\fB\-t\fR, \fB\-\-to\fR \fICITY\fR
send it to CITY
.SH "OPTIONS OF ALL COMMANDS"
.TP
\fB\-\-json\fR
print JSON
.SH "EXAMPLES"
.nf
  ship box \-\-to paris .
.fi
.SH "SEE ALSO"
\fBship\fR(1)
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func write(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, cmd, Header{Source: "ship v1.2.0", Date: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
