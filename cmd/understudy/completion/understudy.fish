# Completion of understudy for fish.
#
#   understudy completion fish | source                  this shell
#   understudy completion fish > ~/.config/fish/completions/understudy.fish     every shell

function __understudy_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l offer (command $words[1] __complete "=$current" $words[2..-1] 2>/dev/null)
    printf '%s\n' $offer[2..-1]
    if string match -q 'files*' -- $offer[1]
        set -l suffixes (string split -n ' ' -- (string replace files '' -- $offer[1]))
        set -l prefix ''
        set -l path $current
        if string match -q -- '--*=*' $current
            set prefix (string replace -r '=.*' '=' -- $current)
            set path (string replace -r '^[^=]*=' '' -- $current)
        end
        for file in (__fish_complete_path $path)
            set -l name (string split -f1 \t -- $file)
            if string match -q '*/' -- $name; or test -z "$suffixes"; or contains -- (string replace -r '.*\.' '' -- $name) $suffixes
                echo $prefix$name
            end
        end
    end
end

complete -c understudy -f -a '(__understudy_complete)'
