# Completion of understudy for bash (3.2 and later).
#
#   source <(understudy completion bash)                 this shell
#   understudy completion bash > ~/.local/share/bash-completion/completions/understudy
#                                                        every shell, where bash-completion is installed

_understudy() {
    # bash takes words apart at "=" and ":", which belong to ours: put them together
    # again, as far as the cursor.
    local rest=${COMP_LINE:0:$COMP_POINT} trimmed piece i
    local words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        trimmed=${rest#"${rest%%[![:space:]]*}"}
        piece=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then piece=$trimmed; fi
        if ((i == 0)) || [[ $trimmed != "$rest" ]]; then
            words+=("$piece")
        else
            words[${#words[@]} - 1]+=$piece
        fi
        rest=${trimmed#"$piece"}
    done
    local current=${words[${#words[@]} - 1]}
    local program=${words[0]/#\~/$HOME}

    COMPREPLY=()
    local line first="" value about mark=$'\t'
    while IFS= read -r line; do
        if [[ -z $first ]]; then
            first=$line
            continue
        fi
        value=${line%%"$mark"*}
        printf -v value '%q' "$value"
        COMPREPLY+=("$value")
    done < <("$program" __complete "=$current" "${words[@]:1:${#words[@]} - 2}" 2>/dev/null)

    local prefix="" path=$current
    if [[ $current == --*=* ]]; then
        prefix=${current%%=*}=
        path=${current#*=}
    fi
    if [[ $first == files* ]]; then
        local suffixes=" ${first#files} " file
        compopt -o filenames 2>/dev/null
        while IFS= read -r file; do
            if [[ -d $file || -z ${suffixes// /} || ( $file == *.* && $suffixes == *" ${file##*.} "* ) ]]; then
                COMPREPLY+=("$prefix$file")
            fi
        done < <(compgen -f -- "${path/#\~\//$HOME/}")
    fi

    # What stands before the last "=" or ":" is a word of its own to bash.
    local cut="" c
    for c in = :; do
        if [[ $COMP_WORDBREAKS == *"$c"* && $current == *"$c"* ]]; then
            prefix=${current%"$c"*}$c
            if ((${#prefix} > ${#cut})); then cut=$prefix; fi
        fi
    done
    if [[ -n $cut ]]; then
        for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$cut"}; done
    fi
}

complete -F _understudy understudy
