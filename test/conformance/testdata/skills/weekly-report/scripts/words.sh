#!/bin/sh
# Counts the words of a file.
exec wc -w "$1"
