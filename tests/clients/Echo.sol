// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// What the client tests deploy: something to read, an event to find, a revert with a reason.
contract Echo {
    event Said(address indexed who, uint256 word);

    uint256 public last;

    function say(uint256 word) external {
        require(word != 0, "nothing to say");
        last = word;
        emit Said(msg.sender, word);
    }
}
