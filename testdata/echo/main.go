// Command echo answers each line of its input with the variable GREETING, the number of
// its arguments and the line.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(os.Getenv("GREETING"), len(os.Args), in.Text())
	}
}
