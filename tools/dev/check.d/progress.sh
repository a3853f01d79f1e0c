# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
# Sourced by scripts that make a person wait.

# show_progress WHAT: reads the output of a command and says every two seconds how far it is, also
# while the command prints nothing. It understands apt-get's status lines (-o APT::Status-Fd=1) and
# ninja's steps, and prints what it does not understand. On a terminal it redraws one line.
show_progress() {
  local what=$1 line far='' from=$SECONDS said=-2 code text end='\n' is_open=1
  [ ! -t 1 ] || end='\r'
  while [ $is_open -eq 1 ]; do
    code=0
    IFS= read -r -t 1 line || code=$?
    if [ $code -eq 0 ]; then
      case $line in
        dlstatus:*) text=${line#*:*:} far="${text%%[.:]*} % downloaded" ;;
        pmstatus:*) text=${line#*:*:} far="${text%%[.:]*} % unpacked and set up" ;;
        '['*/*']'*) text=${line#[} far="step ${text%%]*}" far=${far/\// of } ;;
        'ninja: Entering'* | '') ;;
        *) [ -z "${has_words:-}" ] || printf '%s\n' "$line" ;;
      esac
    elif [ $code -le 128 ]; then
      is_open=0
    fi
    if [ $((SECONDS - said)) -ge 2 ] && [ $is_open -eq 1 ]; then
      printf "%-78s$end" "   $what: ${far:+$far, }$((SECONDS - from)) s"
      said=$SECONDS
    fi
  done
  printf '%-78s\n' "   $what: $((SECONDS - from)) s"
}
